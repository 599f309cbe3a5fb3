"""DescribeBatch: what is decided of a batch."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transaction_commands import BatchDescribed, DescribeBatch
from kafkaesque.server.asking_transactions import ask_sink
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_batch import DescribeBatchRequest, DescribeBatchResponse


async def handle(
    request: DescribeBatchRequest, version: int, session: Session
) -> DescribeBatchResponse:
    """Say which transactions a batch consists of, if it is decided."""
    command = DescribeBatch(query=request.query, sink=request.sink, batch=request.batch)
    try:
        described = await ask_sink(
            session,
            request.query,
            request.sink,
            lambda machine, to, _, __: machine.describe_batch(command, to),
            BatchDescribed,
        )
    except KafkaesqueError as error:
        return DescribeBatchResponse(error_code=code_of(error), error_message=message_of(error))
    names = described.transactional_ids
    return DescribeBatchResponse(
        error_code=ErrorCode.NONE,
        is_decided=names is not None,
        transactional_ids=names or (),
    )
