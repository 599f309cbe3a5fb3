"""DescribeShareGroupOffsets: where share groups start in partitions, and how far they lag."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=90, name="DescribeShareGroupOffsets", first=0, last=1, flexible_since=0)


@struct
class DescribeShareGroupOffsetsRequestTopic:
    """One of `topics` of DescribeShareGroupOffsetsRequestGroup."""

    topic_name: str
    partitions: tuple[Int32, ...] = ()


@struct
class DescribeShareGroupOffsetsRequestGroup:
    """One of `groups` of DescribeShareGroupOffsetsRequest; null asks for all its topics."""

    group_id: str
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None


@message(API)
class DescribeShareGroupOffsetsRequest:
    """A client asks where share groups start."""

    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...]


@struct
class DescribeShareGroupOffsetsResponsePartition:
    """One of `partitions` of DescribeShareGroupOffsetsResponseTopic."""

    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Annotated[Int64, Since(1)] = -1
    error_code: Int16
    error_message: str | None = None


@struct
class DescribeShareGroupOffsetsResponseTopic:
    """One of `topics` of DescribeShareGroupOffsetsResponseGroup."""

    topic_name: str
    topic_id: Uuid
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...]


@struct
class DescribeShareGroupOffsetsResponseGroup:
    """One of `groups` of DescribeShareGroupOffsetsResponse."""

    group_id: str
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...]
    error_code: Int16
    error_message: str | None = None


@message(API)
class DescribeShareGroupOffsetsResponse:
    """The broker returns where groups start in each partition."""

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...]
