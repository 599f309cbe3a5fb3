"""DescribeLogDirs: how much disk space partitions take."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=35, name="DescribeLogDirs", first=1, last=4, flexible_since=2)


@struct
class DescribableLogDirTopic:
    """One of `topics` of DescribeLogDirsRequest."""

    topic: str
    partitions: tuple[Int32, ...] = ()


@message(API)
class DescribeLogDirsRequest:
    """A client asks how much space partitions take; null asks for all of them."""

    topics: tuple[DescribableLogDirTopic, ...] | None


@struct
class DescribeLogDirsPartition:
    """One of `partitions` of DescribeLogDirsTopic."""

    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: bool


@struct
class DescribeLogDirsTopic:
    """One of `topics` of DescribeLogDirsResult."""

    name: str
    partitions: tuple[DescribeLogDirsPartition, ...]


@struct
class DescribeLogDirsResult:
    """One of `results` of DescribeLogDirsResponse."""

    error_code: Int16
    log_dir: str
    topics: tuple[DescribeLogDirsTopic, ...]
    total_bytes: Annotated[Int64, Since(4)] = -1
    usable_bytes: Annotated[Int64, Since(4)] = -1


@message(API)
class DescribeLogDirsResponse:
    """The broker returns the sizes of its partitions, and the free space."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(3)] = 0
    results: tuple[DescribeLogDirsResult, ...]
