"""DecideBatch: decide once and for all which transactions form a batch."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import DecideBatch, Producer
from kafkaesque.server.answers.ask_coordinator import ask_sink
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.decide_batch import DecideBatchRequest, DecideBatchResponse


async def handle(
    request: DecideBatchRequest, version: int, session: Session
) -> DecideBatchResponse:
    """Decide, and answer once all partitions know, or with a code to retry until they do."""
    command = DecideBatch(
        query=request.query,
        sink=request.sink,
        batch=request.batch,
        driver_epoch=request.driver_epoch,
        producers={
            one.transactional_id: Producer(one.producer_id, one.producer_epoch)
            for one in request.transactions
        },
    )
    try:
        decided = await ask_sink(session, command)
    except KafkaesqueError as error:
        return DecideBatchResponse(error_code=code_of(error), error_message=message_of(error))
    return DecideBatchResponse(
        error_code=ErrorCode.NONE,
        transactional_ids=decided.transactional_ids,
        was_decided_before=decided.was_decided_before,
    )
