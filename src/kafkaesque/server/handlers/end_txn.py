"""EndTxn: commit or abort; with transactions v2 the producer goes on with the next epoch."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.group_commands import Now
from kafkaesque.machines.transaction_commands import Decision, End, Ended, Producer, ReplyTo
from kafkaesque.machines.transactions import Transactions
from kafkaesque.server.asking_transactions import ask_transaction
from kafkaesque.server.errors import transactional_code_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE = 2
ABORTABLE_SINCE = 4
BUMPS_SINCE = 5


async def handle(request: EndTxnRequest, version: int, session: Session) -> EndTxnResponse:
    """Decide how the transaction ends; the partitions are told after the answer."""

    def question(machine: Transactions, to: ReplyTo, now: Now, fresh_id: int) -> Decision:
        command = End(
            transactional_id=request.transactional_id,
            producer=Producer(request.producer_id, request.producer_epoch),
            is_commit=request.committed,
            bumps_epoch=version >= BUMPS_SINCE,
            fresh_id=fresh_id,
        )
        return machine.end(command, to, now)

    try:
        ended = await ask_transaction(
            session,
            request.transactional_id,
            question,
            Ended,
            is_fenced=version >= BUMPS_SINCE,
        )
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
