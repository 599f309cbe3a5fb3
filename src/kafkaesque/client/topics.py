"""Topics, as an administrator sees and changes them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kafkaesque.client.refusals import check, first
from kafkaesque.client.router import Router
from kafkaesque.errors import InvalidSetting
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kafkaesque.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkaesque.wire.messages.metadata import MetadataResponseTopic

Place: TypeAlias = tuple[str, int]
"""A partition: the topic's name and the partition's number."""

LATEST = -1
EARLIEST = -2
NOT_FOUND = -1
AS_THE_BROKER_LIKES = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

VERSION_MAX_BY_NAME = 12
"""Fetch and Produce: later versions name topics by ids."""

_TOPIC = 2
_SET, _DELETE = 0, 1
_TOPIC_SETTING = 1
"""A source of a setting's value: it was set for the topic itself."""
_CLIENT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """The replicas of one partition; a leader of -1 is none."""

    index: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """One topic and its partitions, in order."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]

    @property
    def places(self) -> list[Place]:
        """All partitions."""
        return [(self.name, partition.index) for partition in self.partitions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a topic; `is_default` if it was not set for the topic itself."""

    name: str
    value: str | None
    is_default: bool
    is_sensitive: bool


class Topics:
    """Queries and changes of topics; errors are from `client.errors` and the base."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def list(self, *, is_newest: bool = False) -> Sequence[TopicInfo]:
        """Return all topics by name; with `is_newest`, a broker that lags is not asked."""
        said = self._router.question(lambda: self._router.metadata(None, is_newest=is_newest))
        found = [_info(topic) for topic in said.topics if topic.error_code == ErrorCode.NONE]
        return sorted(found, key=lambda topic: topic.name)

    def describe(
        self, name: str, *, is_newest: bool = False, may_create: bool = False
    ) -> TopicInfo:
        """Return one topic; raises UnknownTopic, with `is_newest` never because a broker lags.

        A missing topic is created if allowed and the broker creates topics automatically.
        """

        def ask() -> TopicInfo:
            said = self._router.metadata([name], is_newest=is_newest, may_create=may_create)
            topic = first(said.topics, f"topic {name}")
            check(topic.error_code, f"topic {name}")
            return _info(topic)

        return self._router.question(ask)

    def create(
        self,
        name: str,
        *,
        partitions: int = AS_THE_BROKER_LIKES,
        replicas: int = AS_THE_BROKER_LIKES,
        settings: Mapping[str, str] | None = None,
    ) -> int | None:
        """Create a topic and return its number of partitions, None if the broker does not say.

        Raises TopicExists, InvalidTopic, InvalidSetting.
        """
        configs = (settings or {}).items()
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=key, value=text) for key, text in configs),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=self._timeout_ms)

        def ask() -> int | None:
            said = self._router.ask_controller(request, CreateTopicsResponse)
            one = first(said.topics, f"topic {name}")
            check(one.error_code, f"topic {name}", one.error_message, is_change=True)
            return one.num_partitions if one.num_partitions > 0 else None

        return self._router.change(ask)

    def add_partitions(self, name: str, count: int) -> None:
        """Grow a topic to `count` partitions in all; they cannot be reduced later."""
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(
            topics=(topic,), timeout_ms=self._timeout_ms, validate_only=False
        )

        def ask() -> None:
            said = self._router.ask_controller(request, CreatePartitionsResponse)
            one = first(said.results, f"topic {name}")
            check(one.error_code, f"topic {name}", one.error_message, is_change=True)

        self._router.change(ask)

    def delete(self, name: str) -> None:
        """Delete a topic with all its records; raises UnknownTopic."""
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=name, topic_id=NO_UUID),),
            topic_names=(name,),
            timeout_ms=self._timeout_ms,
        )

        def ask() -> None:
            said = self._router.ask_controller(request, DeleteTopicsResponse)
            one = first(said.responses, f"topic {name}")
            check(one.error_code, f"topic {name}", one.error_message, is_change=True)

        self._router.change(ask)

    def settings(self, name: str) -> Sequence[Setting]:
        """Return all settings of a topic by name."""
        resource = DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=(resource,))

        def ask() -> Sequence[Setting]:
            said = self._router.ask_any(request, DescribeConfigsResponse)
            one = first(said.results, f"topic {name}")
            check(one.error_code, f"topic {name}", one.error_message)
            return sorted((_setting(each) for each in one.configs), key=lambda each: each.name)

        return self._router.question(ask)

    def numbers(self, names: Sequence[str], setting: str) -> dict[str, int]:
        """Return the value of one setting of many topics, where it is a number."""
        request = DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=name, configuration_keys=(setting,)
                )
                for name in names
            )
        )
        said = self._router.question(lambda: self._router.ask_any(request, DescribeConfigsResponse))
        return {
            one.resource_name: int(config.value)
            for one in said.results
            for config in one.configs
            if config.name == setting and config.value and config.value.isdecimal()
        }

    def alter(self, name: str, *, put: Mapping[str, str], drop: Iterable[str] = ()) -> None:
        """Change single settings of a topic, and reset others to their defaults."""
        changes = [
            *(AlterableConfig(name=n, config_operation=_SET, value=v) for n, v in put.items()),
            *(AlterableConfig(name=n, config_operation=_DELETE, value=None) for n in drop),
        ]
        if len({one.name for one in changes}) < len(changes):
            raise InvalidSetting(f"topic {name}: a setting can be changed only once at a time")
        resource = AlterConfigsResource(
            resource_type=_TOPIC, resource_name=name, configs=tuple(changes)
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

        def ask() -> None:
            said = self._router.ask_controller(request, IncrementalAlterConfigsResponse)
            one = first(said.responses, f"topic {name}")
            check(one.error_code, f"topic {name}", one.error_message, is_change=True)

        self._router.change(ask)

    def offsets(
        self, places: Iterable[Place], at: int, *, is_committed: bool = False
    ) -> dict[Place, Offset]:
        """Return an offset of each partition: EARLIEST, LATEST, or the first not before a time.

        A time is in milliseconds since 1970; NOT_FOUND if no record is that late. With
        `is_committed` a partition ends where its first open transaction starts.
        """
        found: dict[Place, Offset] = {}
        wanted = list(places)
        isolation = READ_COMMITTED if is_committed else READ_UNCOMMITTED

        def ask() -> None:
            by_leader: defaultdict[int, list[Place]] = defaultdict(list)
            for topic, partition in wanted:
                if (topic, partition) not in found:
                    by_leader[self._router.leader(topic, partition)].append((topic, partition))
            for leader, asked in by_leader.items():
                request = _offsets_request(asked, at, self._timeout_ms, isolation)
                self._offsets_of(leader, request, found)

        self._router.question(ask)
        return found

    def _offsets_of(
        self, leader: int, request: ListOffsetsRequest, found: dict[Place, Offset]
    ) -> None:
        said = self._router.ask_node(leader, request, ListOffsetsResponse)
        answers = [(topic.name, one) for topic in said.topics for one in topic.partitions]
        for name, one in answers:
            if one.error_code == ErrorCode.NONE:
                found[name, one.partition_index] = one.offset
        for name, one in answers:
            check(one.error_code, f"partition {one.partition_index} of topic {name}")

    @property
    def _timeout_ms(self) -> int:
        return self._router.config.request_ms_max


def _offsets_request(
    asked: Sequence[Place],
    at: int,
    timeout_ms: int,
    isolation: int,
) -> ListOffsetsRequest:
    by_topic: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for topic, partition in asked:
        by_topic[topic].append(ListOffsetsPartition(partition_index=partition, timestamp=at))
    return ListOffsetsRequest(
        replica_id=_CLIENT,
        isolation_level=isolation,
        topics=tuple(
            ListOffsetsTopic(name=topic, partitions=tuple(rows)) for topic, rows in by_topic.items()
        ),
        timeout_ms=timeout_ms,
    )


def _info(topic: MetadataResponseTopic) -> TopicInfo:
    partitions = [
        PartitionInfo(
            index=one.partition_index,
            leader=one.leader_id,
            replicas=one.replica_nodes,
            in_sync=one.isr_nodes,
        )
        for one in topic.partitions
    ]
    return TopicInfo(
        name=topic.name or "",
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(sorted(partitions, key=lambda one: one.index)),
    )


def _setting(one: DescribeConfigsResourceResult) -> Setting:
    return Setting(
        name=one.name,
        value=one.value,
        is_default=one.config_source != _TOPIC_SETTING,
        is_sensitive=one.is_sensitive,
    )
