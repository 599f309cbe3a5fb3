"""CreateTopics: creates topics."""

from typing import Annotated

from kafkaesque.wire.kinds import NO_UUID, Int8, Int16, Int32, Since, Tag, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=19, name="CreateTopics", first=2, last=7, flexible_since=5)


@struct
class CreatableReplicaAssignment:
    """One of `assignments` of CreatableTopic."""

    partition_index: Int32
    broker_ids: tuple[Int32, ...] = ()


@struct
class CreatableTopicConfig:
    """One of `configs` of CreatableTopic."""

    name: str
    value: str | None


@struct
class CreatableTopic:
    """One of `topics` of CreateTopicsRequest."""

    name: str
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[CreatableReplicaAssignment, ...]
    configs: tuple[CreatableTopicConfig, ...]


@message(API)
class CreateTopicsRequest:
    """A client creates topics."""

    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: bool = False


@struct
class CreatableTopicConfigs:
    """One of `configs` of CreatableTopicResult."""

    name: str
    value: str | None
    read_only: bool
    config_source: Int8 = -1
    is_sensitive: bool


@struct
class CreatableTopicResult:
    """One of `topics` of CreateTopicsResponse."""

    name: str
    topic_id: Annotated[Uuid, Since(7)] = NO_UUID
    error_code: Int16
    error_message: str | None
    topic_config_error_code: Annotated[Int16, Tag(0), Since(5)] = 0
    num_partitions: Annotated[Int32, Since(5)] = -1
    replication_factor: Annotated[Int16, Since(5)] = -1
    configs: Annotated[tuple[CreatableTopicConfigs, ...] | None, Since(5)] = None


@message(API)
class CreateTopicsResponse:
    """The broker says which topics were created."""

    throttle_time_ms: Int32 = 0
    topics: tuple[CreatableTopicResult, ...]
