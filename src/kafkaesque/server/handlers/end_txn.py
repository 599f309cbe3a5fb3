"""EndTxn: commit or abort; with transactions v2 the producer continues with the next epoch."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import End, Producer
from kafkaesque.server.answers.ask_coordinator import ask_transaction
from kafkaesque.server.requests.errors import transactional_code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE = 2
ABORTABLE_SINCE = 4
BUMPS_SINCE = 5


async def handle(request: EndTxnRequest, version: int, session: Session) -> EndTxnResponse:
    """Decide the end of the transaction; the partitions get their markers after the response."""
    command = End(
        transactional_id=request.transactional_id,
        producer=Producer(request.producer_id, request.producer_epoch),
        is_commit=request.committed,
        bumps_epoch=version >= BUMPS_SINCE,
    )
    try:
        ended = await ask_transaction(session, command)
    except KafkaesqueError as error:
        code = transactional_code_of(
            error,
            knows_fenced=version >= FENCED_SINCE,
            knows_abortable=version >= ABORTABLE_SINCE,
        )
        return EndTxnResponse(error_code=code)
    return EndTxnResponse(
        error_code=ErrorCode.NONE,
        producer_id=ended.producer.producer_id,
        producer_epoch=ended.producer.epoch,
    )
