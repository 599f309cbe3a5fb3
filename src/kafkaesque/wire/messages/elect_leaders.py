"""ElectLeaders: makes preferred leaders lead their partitions again."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=43, name="ElectLeaders", first=0, last=2, flexible_since=2)


@struct
class ElectLeadersTopic:
    """One of `topic_partitions` of ElectLeadersRequest."""

    topic: str
    partitions: tuple[Int32, ...] = ()


@message(API)
class ElectLeadersRequest:
    """A client asks for other leaders; null asks for all partitions."""

    election_type: Annotated[Int8, Since(1)] = 0
    topic_partitions: tuple[ElectLeadersTopic, ...] | None
    timeout_ms: Int32 = 60_000


@struct
class ElectLeadersPartitionResult:
    """One of `partition_result` of ElectLeadersTopicResult."""

    partition_id: Int32
    error_code: Int16
    error_message: str | None


@struct
class ElectLeadersTopicResult:
    """One of `replica_election_results` of ElectLeadersResponse."""

    topic: str
    partition_result: tuple[ElectLeadersPartitionResult, ...]


@message(API)
class ElectLeadersResponse:
    """The broker says which partitions now have their preferred leader."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(1)] = 0
    replica_election_results: tuple[ElectLeadersTopicResult, ...]
