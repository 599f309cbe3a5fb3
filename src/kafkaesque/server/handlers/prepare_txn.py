"""PrepareTxn: a producer prepares its transaction, so that another can end it."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import Prepare, Producer
from kafkaesque.server.answers.ask_coordinator import ask_transaction
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.prepare_txn import PrepareTxnRequest, PrepareTxnResponse


async def handle(request: PrepareTxnRequest, version: int, session: Session) -> PrepareTxnResponse:
    """Prepare the transaction."""
    command = Prepare(
        transactional_id=request.transactional_id,
        producer=Producer(request.producer_id, request.producer_epoch),
        owner=request.owner,
    )
    try:
        await ask_transaction(session, command)
    except KafkaesqueError as error:
        return PrepareTxnResponse(error_code=code_of(error), error_message=message_of(error))
    return PrepareTxnResponse(error_code=ErrorCode.NONE)
