"""Reads records for CONS and PUSH: only committed ones, transactions included."""

from collections.abc import Mapping

from msgspec import Struct

from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_errors import BadCommand, refusal
from kafkaesque.gateway.text_topics import TopicPlace
from kafkaesque.record.aborted import AbortedBatches
from kafkaesque.record.read import iterate_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import split_batches
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

EARLIEST = -2
LATEST = -1
READ_COMMITTED = 1
RECORDS_MAX = 100_000
"""Records held at once: a few bytes of batches may unpack to far more."""

_NOT_A_REPLICA = -1


class Found(Struct, frozen=True, kw_only=True):
    """Records from one position, and the position to continue from."""

    records: list[Record]
    end: Offset


async def read(desk: TextDesk, place: TopicPlace, partition: int, offset: Offset) -> list[Record]:
    """Return records from `offset`, as many as fit into one reply; none at the end.

    Raises BadCommand if the log has no such offset.
    """
    limits = desk.limits
    records: list[Record] = []
    size = 0
    position = offset
    while True:  # ends: every turn advances in the log, or returns
        (data,) = await fetch(desk, place, {partition: position}, wait_ms=0)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            first = await find_offset(desk, place, partition, EARLIEST)
            end = await find_offset(desk, place, partition, LATEST)
            raise BadCommand(f"offset {position} is outside the log, which holds [{first}, {end})")
        check(data)
        found = visible_records(data, position, limits.records_per_answer_max)
        if found.end == position:
            return records
        for record in found.records:
            size += len(record.key or b"") + len(record.value or b"")
            if records and size > limits.answer_bytes_max:
                return records
            records.append(record)
            if len(records) == limits.records_per_answer_max:
                return records
        position = found.end


async def fetch(
    desk: TextDesk, place: TopicPlace, positions: Mapping[int, Offset], wait_ms: int
) -> tuple[PartitionData, ...]:
    """Fetch at these positions; if there is nothing yet, wait for up to `wait_ms`."""
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=desk.limits.fetch_bytes,
        isolation_level=READ_COMMITTED,
        topics=(
            FetchTopic(
                topic_id=place.topic_id,
                topic=place.name,
                partitions=tuple(
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=desk.limits.fetch_bytes,
                    )
                    for partition, offset in positions.items()
                ),
            ),
        ),
    )
    answer = await desk.channel.call(request, FetchResponse)
    if answer.error_code != ErrorCode.NONE:
        raise refusal(answer.error_code)
    return answer.responses[0].partitions if answer.responses else ()


def check(data: PartitionData) -> None:
    """Raise BadCommand if a partition could not be read, NotNow if that is transient."""
    if data.error_code != ErrorCode.NONE:
        raise refusal(data.error_code)


def visible_records(data: PartitionData, position: Offset, records_max: int = RECORDS_MAX) -> Found:
    """Return up to `records_max` records from `position` that consumers may see.

    Markers are left out, and so are records of aborted transactions, which Kafka leaves to its
    clients to skip.
    """
    aborted = AbortedBatches(
        (one.producer_id, one.first_offset) for one in data.aborted_transactions or ()
    )
    records: list[Record] = []
    end = position
    for batch in split_batches(data.records or b""):
        end = max(end, batch.end_offset)
        if not aborted.leaves_out(batch) and not batch.is_control:
            for record in iterate_records(batch):
                if record.offset >= position:
                    records.append(record)
                if len(records) == records_max:
                    return Found(records=records, end=record.offset + 1)
    return Found(records=records, end=end)


async def find_offset(desk: TextDesk, place: TopicPlace, partition: int, which: int) -> Offset:
    """Return the offset at one end of a partition: EARLIEST or LATEST."""
    request = ListOffsetsRequest(
        replica_id=_NOT_A_REPLICA,
        isolation_level=READ_COMMITTED,
        topics=(
            ListOffsetsTopic(
                name=place.name,
                partitions=(ListOffsetsPartition(partition_index=partition, timestamp=which),),
            ),
        ),
    )
    answer = await desk.channel.call(request, ListOffsetsResponse)
    (found,) = answer.topics[0].partitions
    if found.error_code != ErrorCode.NONE:
        raise refusal(found.error_code)
    return found.offset
