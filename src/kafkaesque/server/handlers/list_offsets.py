"""ListOffsets: the offset at either end of a partition, or at a timestamp."""

import asyncio

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.admin.resources import repeated_in
from kafkaesque.server.requests.callback_waits import is_current
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
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
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    GREATEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The version in which each special value was introduced."""

UNKNOWN = -1, -1
READ_COMMITTED = 1
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


async def handle(
    request: ListOffsetsRequest, version: int, session: Session
) -> ListOffsetsResponse:
    """Look up each partition independently; an unknown one does not fail the others.

    A partition named twice is refused, as in Kafka: each lookup by time may take a while.
    """
    repeated = repeated_in(
        (t.name, p.partition_index) for t in request.topics for p in t.partitions
    )
    catalog = session.broker.catalog
    is_sure = all(one.name in catalog.topics for one in request.topics)
    is_sure = is_sure or await is_current(session.broker)
    topics = []
    has_looked = False
    for topic in request.topics:
        found = []
        for asked in topic.partitions:
            if (topic.name, asked.partition_index) in repeated:
                found.append(_refused(asked, ErrorCode.INVALID_REQUEST))
                continue
            if asked.timestamp >= 0:
                if has_looked:
                    await asyncio.sleep(0)  # other work runs between lookups by time
                has_looked = True
            answer = _answer(topic.name, asked, request.isolation_level, version, session)
            if not is_sure and topic.name not in session.broker.catalog.topics:
                answer = _refused(asked, NOT_LEADER)  # its leader knows it
            found.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(found)))
        if any(one.error_code == NOT_LEADER for one in found):
            # aiokafka asks the same broker again and again until its metadata is five minutes old
            # (`Fetcher._update_fetch_positions`), and kafka-python 3.0 as fast as it can, unless
            # they lose the connection.
            session.dismiss()
    return ListOffsetsResponse(topics=tuple(topics))


def _refused(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _answer(
    topic: str, asked: ListOffsetsPartition, isolation: int, version: int, session: Session
) -> ListOffsetsPartitionResponse:
    wanted = asked.timestamp
    if wanted < 0 and version < SINCE.get(wanted, version + 1):
        return _refused(asked, ErrorCode.UNSUPPORTED_VERSION)
    try:
        partition = session.broker.partition(topic, asked.partition_index)
        partition.check_term(asked.current_leader_epoch)
        is_stable = isolation == READ_COMMITTED
        end = partition.stable_offset if is_stable else partition.high_watermark
        offset, timestamp_ms = _look_up(partition, wanted, end)
    except KafkaesqueError as error:
        return _refused(asked, code_of(error))
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp_ms,
        offset=offset,
        leader_epoch=-1 if offset < 0 else partition.term_of(offset),
    )


def _look_up(partition: Partition, timestamp_ms: int, end: int) -> tuple[int, int]:
    """Return offset and time among the records before `end`."""
    match timestamp_ms:
        case _ if timestamp_ms == LATEST:
            return end, -1
        case _ if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
            return partition.first_offset, -1
        case _ if timestamp_ms == GREATEST_TIMESTAMP:
            return partition.newest_time(end) or UNKNOWN
        case _ if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return UNKNOWN  # everything is on local disk
        case _:
            return partition.find_time(timestamp_ms, end) or UNKNOWN
