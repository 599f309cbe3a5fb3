"""AlterPartitionReassignments: starts moves of partitions between brokers, or calls them off."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=45, name="AlterPartitionReassignments", first=0, last=1, flexible_since=0)


@struct
class ReassignablePartition:
    """One of `partitions` of ReassignableTopic; null replicas call its move off."""

    partition_index: Int32
    replicas: tuple[Int32, ...] | None = None


@struct
class ReassignableTopic:
    """One of `topics` of AlterPartitionReassignmentsRequest."""

    name: str
    partitions: tuple[ReassignablePartition, ...]


@message(API)
class AlterPartitionReassignmentsRequest:
    """A client says which brokers should hold partitions."""

    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Annotated[bool, Since(1)] = True
    topics: tuple[ReassignableTopic, ...]


@struct
class ReassignablePartitionResponse:
    """One of `partitions` of ReassignableTopicResponse."""

    partition_index: Int32
    error_code: Int16
    error_message: str | None


@struct
class ReassignableTopicResponse:
    """One of `responses` of AlterPartitionReassignmentsResponse."""

    name: str
    partitions: tuple[ReassignablePartitionResponse, ...]


@message(API)
class AlterPartitionReassignmentsResponse:
    """The broker says which moves were started or called off."""

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[bool, Since(1)] = True
    error_code: Int16
    error_message: str | None
    responses: tuple[ReassignableTopicResponse, ...]
