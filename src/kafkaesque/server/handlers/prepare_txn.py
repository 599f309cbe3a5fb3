"""PrepareTxn: a producer leaves its transaction to another to end it."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transaction_commands import Prepare, Prepared, Producer
from kafkaesque.server.asking_transactions import ask_transaction
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.prepare_txn import PrepareTxnRequest, PrepareTxnResponse


async def handle(request: PrepareTxnRequest, version: int, session: Session) -> PrepareTxnResponse:
    """Have the transaction wait for its end."""
    command = Prepare(
        transactional_id=request.transactional_id,
        producer=Producer(request.producer_id, request.producer_epoch),
        owner=request.owner,
    )
    try:
        await ask_transaction(
            session,
            request.transactional_id,
            lambda machine, to, now, _: machine.prepare(command, to, now),
            Prepared,
        )
    except KafkaesqueError as error:
        return PrepareTxnResponse(error_code=code_of(error), error_message=message_of(error))
    return PrepareTxnResponse(error_code=ErrorCode.NONE)
