"""DeleteRecords: delete the records before an offset."""

from functools import partial

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.requests.callback_waits import done
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_NO_OFFSET = -1


async def handle(
    request: DeleteRecordsRequest, version: int, session: Session
) -> DeleteRecordsResponse:
    """Trim each partition independently, and report its first offset."""
    topics = []
    for topic in request.topics:
        results = [await _trim(topic.name, partition, session) for partition in topic.partitions]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(results)))
    return DeleteRecordsResponse(topics=tuple(topics))


async def _trim(
    topic: str, asked: DeleteRecordsPartition, session: Session
) -> DeleteRecordsPartitionResult:
    index = asked.partition_index
    try:
        partition = session.broker.partition(topic, index)
        await done(partial(session.broker.delete_records, topic, index, asked.offset))
    except KafkaesqueError as error:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=_NO_OFFSET, error_code=code_of(error)
        )
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=partition.first_offset, error_code=ErrorCode.NONE
    )
