"""DescribeLogDirs: the sizes of partitions, and the free disk space."""

from collections.abc import Iterator

from kafkaesque.broker.cluster.topics import Slot
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.partition.partition_errors import NotFilled
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def handle(
    request: DescribeLogDirsRequest, version: int, session: Session
) -> DescribeLogDirsResponse:
    """Describe the single data folder; unknown partitions are left out.

    Damaged partitions are listed in a second, failed folder: `kafkaesque doctor` reads it.
    """
    total, usable = session.broker.space()
    result = DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=session.broker.data_folder,
        topics=tuple(_topics(request, session)),
        total_bytes=total,
        usable_bytes=usable,
    )
    damaged = tuple(_damaged(request, session))
    if not damaged:
        return DescribeLogDirsResponse(results=(result,))
    # Kafka reports a failed folder like this; damaged partitions appear in the first folder too.
    failed = DescribeLogDirsResult(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR,
        log_dir=f"{session.broker.data_folder} (damaged)",
        topics=damaged,
        total_bytes=-1,
        usable_bytes=-1,
    )
    return DescribeLogDirsResponse(results=(result, failed))


def _topics(request: DescribeLogDirsRequest, session: Session) -> Iterator[DescribeLogDirsTopic]:
    for name, slots in _wanted(request, session):
        partitions = tuple(
            _partition(index, slot.size_bytes)
            for index, slot in slots
            if isinstance(slot, Partition)
        )
        yield DescribeLogDirsTopic(name=name, partitions=partitions)


def _damaged(request: DescribeLogDirsRequest, session: Session) -> Iterator[DescribeLogDirsTopic]:
    for name, slots in _wanted(request, session):
        found = tuple(_partition(index, 0) for index, slot in slots if _is_damaged(slot))
        if found:
            yield DescribeLogDirsTopic(name=name, partitions=found)


def _wanted(
    request: DescribeLogDirsRequest, session: Session
) -> Iterator[tuple[str, list[tuple[int, Slot]]]]:
    known = session.broker.topics
    wanted: dict[str, set[int] | None] = dict.fromkeys(known.names)
    if request.topics is not None:
        wanted = {t.topic: set(t.partitions) for t in request.topics if t.topic in wanted}
    for name, indexes in wanted.items():
        slots = enumerate(known.slots(name))
        yield name, [one for one in slots if indexes is None or one[0] in indexes]


def _partition(index: int, size: int) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=index, partition_size=size, offset_lag=0, is_future_key=False
    )


def _is_damaged(slot: Slot) -> bool:
    if isinstance(slot, Partition):
        return bool(slot.replica.damage.found)
    return isinstance(slot, PartitionOffline | NotFilled)
