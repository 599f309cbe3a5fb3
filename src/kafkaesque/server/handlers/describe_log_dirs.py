"""DescribeLogDirs: how large partitions are, and how much room there is."""

from collections.abc import Iterator

from kafkaesque.broker.partition import Partition
from kafkaesque.server.session import Session
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
    """Tell of the one folder that there is; partitions that are not there are left out."""
    total, usable = session.broker.space()
    result = DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=session.broker.data_folder,
        topics=tuple(_topics(request, session)),
        total_bytes=total,
        usable_bytes=usable,
    )
    return DescribeLogDirsResponse(results=(result,))


def _topics(request: DescribeLogDirsRequest, session: Session) -> Iterator[DescribeLogDirsTopic]:
    known = session.broker.topics
    wanted: dict[str, set[int] | None] = dict.fromkeys(known.names)
    if request.topics is not None:
        wanted = {t.topic: set(t.partitions) for t in request.topics if t.topic in wanted}
    for name, indexes in wanted.items():
        partitions = tuple(
            DescribeLogDirsPartition(
                partition_index=index,
                partition_size=slot.size_bytes,
                offset_lag=0,
                is_future_key=False,
            )
            for index, slot in enumerate(known.slots(name))
            if isinstance(slot, Partition) and (indexes is None or index in indexes)
        )
        yield DescribeLogDirsTopic(name=name, partitions=partitions)
