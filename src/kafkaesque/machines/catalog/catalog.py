"""The cluster's own metadata: its id, brokers, topics, and the producer ids given away.

A machine (`machines/machine.py`): deciding methods look at the state and return records, `apply`
changes it. Partition moves and broker removal are decided in `machines/catalog/catalog_moves.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaesque.errors import InvalidSetting, InvalidTopic, TopicExists, UnknownTopic
from kafkaesque.machines.catalog.catalog_errors import (
    BrokerRemoved,
    InvalidAssignment,
    InvalidPartitions,
    SettingsChanged,
    UnknownTopicId,
    UnsupportedLevel,
)
from kafkaesque.machines.catalog.catalog_records import (
    BROKER_PREFIX,
    CLUSTER_KEY,
    GROUP_PREFIX,
    PRODUCER_IDS_KEY,
    REMOVED_KEY,
    SETTINGS_PREFIX,
    TOPIC_PREFIX,
    BrokerSet,
    BrokerSettingsSet,
    BrokersRemoved,
    ClusterNamed,
    FeaturesSet,
    GroupSettingsSet,
    ProducerIdsGiven,
    TopicPlaced,
    TopicSet,
    broker_of,
    broker_record,
    decode,
    group_settings_record,
    newer_format,
    on_first,
    record,
    settings_record,
    topic_key,
    topic_of,
    topic_record,
)
from kafkaesque.machines.catalog.catalog_values import INTERNAL_TOPICS, Move, Registration, Topic
from kafkaesque.machines.catalog.features import (
    CATALOG_VERSION,
    Finalized,
    Range,
    features_of,
    features_record,
    shortfall,
    supported,
)
from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.text_size import TEXT_BYTES, chars_bytes
from kafkaesque.topic_settings import TOPIC_SETTINGS, resolve
from kafkaesque.types import NodeId

__all__ = [
    "INTERNAL_TOPICS",
    "Catalog",
    "Move",
    "Registration",
    "Topic",
    "check_name",
    "removed_text",
]

NAME_CHARS_MAX = 249
PARTITIONS_MAX = 10_000
"""Of one topic: more than any sane topic has, yet few enough to create in one request."""

ALL_PARTITIONS_MAX = 20_000
"""Of all topics together: each takes 15 kB of memory, and clients create topics at will."""

BROKERS_MAX = 1_000
"""Of one cluster: every broker has a link to every other."""

ALL_SETTINGS_BYTES_MAX = 16 << 20
"""Of all topics together: the list that throttles a topic can be of any length, and each broker
keeps it. A topic with every numeric setting has about 1 kB."""

_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class Catalog:
    """The state that follows from all records so far."""

    def __init__(self, supports: Mapping[str, Range] | None = None) -> None:
        self._supports = supported() if supports is None else supports
        self.finalized = Finalized()
        """The feature levels at which the cluster works."""
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self.settings_bytes = 0
        """Of all topics together."""
        self.cluster_id: str | None = None
        self.next_producer_id = 0
        self.buried: set[bytes] = set()
        """Ids of deleted topics whose files may still exist.

        Only a tombstone adds one; the code that removes the files takes it out.
        """
        self.brokers: dict[NodeId, Registration] = {}
        """Every broker that ever registered and was not removed, by its id."""
        self.removed: frozenset[NodeId] = frozenset()
        """The numbers of removed brokers: one that comes back is refused."""
        self.broker_settings: dict[NodeId, Mapping[str, str]] = {}
        """Broker settings made at run time, by broker id; those of `ALL_BROKERS` hold for all."""
        self.group_settings: dict[str, Mapping[str, str]] = {}
        """Settings of single groups, by the group's name."""
        self._changed: dict[bytes, None] = {}
        self.topics_mark = object()
        """A new object whenever a topic is set or deleted."""

    def take_changed(self) -> list[bytes]:
        """Return the ids of topics set or deleted since the last call, in order."""
        changed, self._changed = list(self._changed), {}
        return changed

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by its name."""
        return self._topics

    def topic(self, name: str) -> Topic:
        """Return the topic with this name; raises UnknownTopic."""
        found = self._topics.get(name)
        if found is None:
            raise UnknownTopic(f"there is no topic {name}")
        return found

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """Return the topic with this id."""
        return self._by_id.get(topic_id)

    def topic_of_id(self, topic_id: bytes) -> Topic:
        """Return the topic with this id; raises UnknownTopicId."""
        found = self._by_id.get(topic_id)
        if found is None:
            raise UnknownTopicId("there is no topic with this id")
        return found

    # ── deciding ─────────────────────────────────────────────────────────────────────────────

    def name_cluster(self, cluster_id: str) -> list[MachineRecord]:
        """Decide on the cluster's id."""
        assert self.cluster_id is None, "a cluster keeps its id"
        return [record(CLUSTER_KEY, ClusterNamed(cluster_id=cluster_id))]

    def register(self, broker: Registration) -> list[MachineRecord]:
        """Decide to register a broker; raises InvalidAssignment if another broker has its id.

        Raises BrokerRemoved for a removed broker, UnsupportedLevel for one that is too old.
        """
        if broker.node in self.removed:
            raise BrokerRemoved(removed_text(broker.node))
        self._check_levels(f"broker {broker.node}", broker.levels)
        known = self.brokers.get(broker.node)
        if known is not None and known.directory != broker.directory:
            raise InvalidAssignment(f"broker {broker.node} has another data folder: take a new id")
        if known is not None:
            broker = replace(broker, is_draining=known.is_draining)
        # A lagging broker keeps registering, and would chase its own records.
        return [] if broker == known else [broker_record(broker)]

    def admit(
        self,
        directory: bytes,
        host: str,
        port: int,
        rack: str,
        levels: Mapping[str, Range] | None = None,
    ) -> tuple[NodeId, list[MachineRecord]]:
        """Decide on the number of the broker with this data folder.

        Raises InvalidAssignment, and UnsupportedLevel for a broker that is too old.
        """
        self._check_levels("the broker that wants to join", levels or {})
        for known in self.brokers.values():
            if known.directory == directory:
                return known.node, []
        if len(self.brokers) >= BROKERS_MAX:
            raise InvalidAssignment(f"a cluster has at most {BROKERS_MAX} brokers")
        node = 1 + max({*self.brokers, *self.removed}, default=0)
        admitted = Registration(
            node=node,
            host=host,
            port=port,
            rack=rack,
            directory=directory,
            incarnation=0,
            levels=levels or {},
        )
        return node, [broker_record(admitted)]

    def create_topic(
        self,
        name: str,
        partitions: int,
        topic_id: bytes,
        settings: Mapping[str, str],
        replicas: Sequence[Replicas] | None = None,
    ) -> list[MachineRecord]:
        """Decide to create a topic; raises InvalidTopic, InvalidSetting, TopicExists.

        Without `replicas` it goes on the first broker alone.
        """
        check_name(name)
        _check_partitions(partitions)
        placed = on_first(partitions) if replicas is None else tuple(replicas)
        _check_replicas(partitions, placed)
        resolve(settings)
        if name in self._topics:
            raise TopicExists(f"topic {name} already exists")
        self._check_collision(name)
        self._check_room(partitions)
        self._check_settings({}, settings)
        return [
            topic_record(Topic(name=name, topic_id=topic_id, replicas=placed, settings=settings))
        ]

    def delete_topic(self, name: str) -> list[MachineRecord]:
        """Decide to delete a topic; raises UnknownTopic, InvalidTopic for an internal one."""
        topic = self.topic(name)
        if topic.is_internal:
            raise InvalidTopic(f"{name} holds the broker's own state and cannot be deleted")
        return [MachineRecord(topic_key(topic.topic_id), None)]

    def add_partitions(
        self, name: str, partitions: int, added: Sequence[Replicas] | None = None
    ) -> list[MachineRecord]:
        """Decide to grow a topic to this many partitions; raises InvalidTopic, InvalidPartitions.

        `added` are the brokers of the new ones; without it they go on the first broker alone.
        """
        topic = self.topic(name)
        _check_partitions(partitions)
        if topic.is_internal:
            raise InvalidTopic(f"{name} holds the broker's own state and cannot be changed")
        if partitions <= topic.partitions:
            raise InvalidPartitions(f"topic {name} already has {topic.partitions} partitions")
        self._check_room(partitions - topic.partitions)
        new = on_first(partitions - topic.partitions) if added is None else tuple(added)
        replicas = topic.replicas + new
        _check_replicas(partitions, replicas)
        return [topic_record(replace(topic, replicas=replicas))]

    def set_settings(
        self, name: str, settings: Mapping[str, str], expected: Mapping[str, str] | None = None
    ) -> list[MachineRecord]:
        """Decide to replace all settings of a topic; raises UnknownTopic, InvalidSetting.

        Raises SettingsChanged if they are not `expected`, so that no other change is lost.
        """
        resolve(settings)
        topic = self.topic(name)
        if expected is not None and topic.settings != expected:
            raise SettingsChanged(f"the settings of {name} were changed meanwhile")
        self._check_settings(topic.settings, settings)
        return [topic_record(replace(topic, settings=settings))]

    def give_producer_ids(self, count: int) -> list[MachineRecord]:
        """Decide to give away the next ids, starting at `next_producer_id`."""
        given = ProducerIdsGiven(next_id=self.next_producer_id + count)
        return [record(PRODUCER_IDS_KEY, given)]

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, record: MachineRecord) -> None:
        """Take one record from the log; raises NewerFormat for an unknown one."""
        if record.value is None:
            self._forget(record.key)
            return
        value = decode(record.value)
        match value:
            case TopicSet() | TopicPlaced():
                self._put(topic_of(value))
            case BrokerSet():
                self.brokers[value.node] = broker_of(value)
            case ClusterNamed():
                self.cluster_id = value.cluster_id
            case ProducerIdsGiven():
                self.next_producer_id = value.next_id
            case BrokersRemoved():
                self.removed = frozenset(value.nodes)
            case FeaturesSet():
                self._finalized(features_of(value))
            case BrokerSettingsSet():
                self.broker_settings[value.node] = value.settings
            case GroupSettingsSet():
                self.group_settings[value.group] = value.settings

    def _finalized(self, finalized: Finalized) -> None:
        said = shortfall("this broker", self._supports, finalized.levels)
        if said is not None:
            raise UnsupportedLevel(said)
        self.finalized = finalized

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the catalog, with tombstones of topics not yet cleaned up."""
        if self.cluster_id is not None:
            yield record(CLUSTER_KEY, ClusterNamed(cluster_id=self.cluster_id))
        if self.finalized.epoch:
            yield features_record(self.finalized)
        if self.next_producer_id:
            yield record(PRODUCER_IDS_KEY, ProducerIdsGiven(next_id=self.next_producer_id))
        if self.removed:
            yield record(REMOVED_KEY, BrokersRemoved(nodes=sorted(self.removed)))
        for broker in self.brokers.values():
            yield broker_record(broker)
        for node, settings in self.broker_settings.items():
            yield settings_record(node, settings)
        for group, settings in self.group_settings.items():
            yield group_settings_record(group, settings)
        for topic in self._topics.values():
            yield topic_record(topic)
        for topic_id in sorted(self.buried):
            yield MachineRecord(topic_key(topic_id), None)

    def _check_levels(self, who: str, levels: Mapping[str, Range]) -> None:
        said = shortfall(who, levels, self.finalized.levels)
        if said is not None:
            raise UnsupportedLevel(said)

    def _put(self, topic: Topic) -> None:
        old = self._by_id.get(topic.topic_id)
        self.settings_bytes -= 0 if old is None else _settings_bytes(old.settings)
        self.settings_bytes += _settings_bytes(topic.settings)
        self._topics[topic.name] = self._by_id[topic.topic_id] = topic
        self.topics_mark = object()
        self._changed[topic.topic_id] = None

    def _check_room(self, added: int) -> None:
        if added + sum(topic.partitions for topic in self._topics.values()) > ALL_PARTITIONS_MAX:
            raise InvalidPartitions(f"all topics together have at most {ALL_PARTITIONS_MAX}")

    def _check_settings(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        level = self.finalized.levels[CATALOG_VERSION]
        for name in new:
            needed = TOPIC_SETTINGS[name].level
            if needed > level and name not in old:
                raise InvalidSetting(
                    f"older brokers of the cluster may not know {name}: when all are upgraded, "
                    f"run `kafkaesque cluster upgrade --yes` ({CATALOG_VERSION} is {level} and "
                    f"must be {needed})"
                )
        more = _settings_bytes(new) - _settings_bytes(old)
        if more > 0 and self.settings_bytes + more > ALL_SETTINGS_BYTES_MAX:
            raise InvalidSetting(
                f"the settings of all topics together have at most {ALL_SETTINGS_BYTES_MAX} bytes"
            )

    def _check_collision(self, name: str) -> None:
        """Refuse what Kafka refuses: metric names treat a dot and an underscore alike."""
        plain = name.replace(".", "_")
        if "_" not in plain:
            return
        for other in self._topics:
            if other.replace(".", "_") == plain:
                raise InvalidTopic(f"topic {name} differs from {other} only in dots, underscores")

    def _forget(self, key: bytes) -> None:
        if key.startswith(BROKER_PREFIX):
            self.brokers.pop(int(key.removeprefix(BROKER_PREFIX)), None)
            return
        if key.startswith(SETTINGS_PREFIX):
            self.broker_settings.pop(int(key.removeprefix(SETTINGS_PREFIX)), None)
            return
        if key.startswith(GROUP_PREFIX):
            self.group_settings.pop(key.removeprefix(GROUP_PREFIX).decode(), None)
            return
        if not key.startswith(TOPIC_PREFIX):
            raise newer_format()
        topic_id = key.removeprefix(TOPIC_PREFIX)
        self.buried.add(topic_id)
        self._changed[topic_id] = None
        topic = self._by_id.pop(topic_id, None)
        self.settings_bytes -= 0 if topic is None else _settings_bytes(topic.settings)
        # A tombstone may outlive its topic, and another topic may have the name by now.
        if topic is not None and self._topics.get(topic.name) is topic:
            del self._topics[topic.name]
            self.topics_mark = object()


def removed_text(node: NodeId) -> str:
    """Return the message for a removed broker that comes back."""
    return (
        f"broker {node} was removed from the cluster and its number is never given again: "
        "start it with an empty data folder and --join to add it as a new broker"
    )


def check_name(name: str) -> None:
    """Raise InvalidTopic unless Kafka allows this name; a valid one is also safe in a path."""
    if not name or name in (".", "..") or len(name) > NAME_CHARS_MAX or not _NAME.fullmatch(name):
        raise InvalidTopic(
            f"a topic's name has 1 to {NAME_CHARS_MAX} letters, digits, dots, hyphens, underscores"
        )


def _settings_bytes(settings: Mapping[str, str]) -> int:
    return sum(
        chars_bytes(name) + chars_bytes(value) + TEXT_BYTES for name, value in settings.items()
    )


def _check_partitions(partitions: int) -> None:
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise InvalidPartitions(f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}")


def _check_replicas(partitions: int, replicas: Iterable[Replicas]) -> None:
    """Raise InvalidAssignment unless every partition has brokers, each of them once."""
    count = 0
    for nodes in replicas:
        count += 1
        if not nodes or len(set(nodes)) != len(nodes):
            raise InvalidAssignment(f"a partition cannot be on brokers {list(nodes)}")
    if count != partitions:
        raise InvalidAssignment(f"{count} of {partitions} partitions have brokers")
