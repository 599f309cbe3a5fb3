"""DescribeBatch: the decision about a batch."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import DescribeBatch
from kafkaesque.server.answers.ask_coordinator import ask_sink
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_batch import DescribeBatchRequest, DescribeBatchResponse


async def handle(
    request: DescribeBatchRequest, version: int, session: Session
) -> DescribeBatchResponse:
    """Return the transactions of a batch, if it is decided."""
    command = DescribeBatch(query=request.query, sink=request.sink, batch=request.batch)
    try:
        described = await ask_sink(session, command)
    except KafkaesqueError as error:
        return DescribeBatchResponse(error_code=code_of(error), error_message=message_of(error))
    names = described.transactional_ids
    return DescribeBatchResponse(
        error_code=ErrorCode.NONE,
        is_decided=names is not None,
        transactional_ids=names or (),
    )
