"""ListOffsets: the offset at either end of a partition, or at a time."""

from kafkaesque.broker.partition import Partition
from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.errors import code_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST = -1
EARLIEST = -2
GREATEST_TIMESTAMP = -3
EARLIEST_LOCAL = -4


async def handle(
    request: ListOffsetsRequest, version: int, session: Session
) -> ListOffsetsResponse:
    """Look up each partition by itself; one that cannot be found does not spoil the others."""
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(_answer(topic.name, p, session) for p in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _answer(
    topic: str, asked: ListOffsetsPartition, session: Session
) -> ListOffsetsPartitionResponse:
    try:
        partition = session.broker.partition(topic, asked.partition_index)
        offset, timestamp_ms = _look_up(partition, asked.timestamp)
    except KafkaesqueError as error:
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=code_of(error)
        )
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp_ms,
        offset=offset,
        leader_epoch=partition.term,
    )


def _look_up(partition: Partition, timestamp_ms: int) -> tuple[int, int]:
    match timestamp_ms:
        case _ if timestamp_ms == LATEST:
            return partition.high_watermark, -1
        case _ if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
            return partition.first_offset, -1
        case _ if timestamp_ms == GREATEST_TIMESTAMP:
            return partition.newest_time() or (-1, -1)
        case _:
            return partition.find_time(timestamp_ms) or (-1, -1)
