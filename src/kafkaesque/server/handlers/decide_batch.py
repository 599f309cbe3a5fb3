"""DecideBatch: which transactions make up a batch, decided once and for all."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transaction_commands import BatchDecided, DecideBatch, Producer
from kafkaesque.server.asking_transactions import ask_sink
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.decide_batch import DecideBatchRequest, DecideBatchResponse


async def handle(
    request: DecideBatchRequest, version: int, session: Session
) -> DecideBatchResponse:
    """Decide, and answer when all partitions know, or that they do not yet: then to ask again."""
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
        decided = await ask_sink(
            session,
            request.query,
            request.sink,
            lambda machine, to, now, _: machine.decide(command, to, now),
            BatchDecided,
        )
    except KafkaesqueError as error:
        return DecideBatchResponse(error_code=code_of(error), error_message=message_of(error))
    return DecideBatchResponse(
        error_code=ErrorCode.NONE,
        transactional_ids=decided.transactional_ids,
        was_decided_before=decided.was_decided_before,
    )
