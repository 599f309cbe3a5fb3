"""The cluster's own metadata: its id, brokers, topics, and which producer ids were given away.

A machine (`machines/machine.py`): what decides looks at the state and returns records, `apply`
changes it. Values are msgpack arrays whose first element is their tag
(`docs/reference/format-catalog.md`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from kafkaesque.errors import (
    InvalidAssignment,
    InvalidPartitions,
    InvalidTopic,
    NewerFormat,
    TopicExists,
    UnknownTopic,
    UnknownTopicId,
)
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.placement import Replicas
from kafkaesque.topic_settings import resolve
from kafkaesque.types import NodeId

FORMAT = 2
FIRST_BROKER: NodeId = 1
"""Where all partitions of a topic are that says nothing of replicas: there was one broker then."""

NAME_CHARS_MAX = 249
PARTITIONS_MAX = 10_000
"""Of one topic: more than any sane topic has, few enough to create in one request."""

ALL_PARTITIONS_MAX = 20_000
"""Of all topics together: each takes 15 kB of memory, and clients create topics at will."""

BROKERS_MAX = 1_000
"""Of one cluster: everybody has a link to everybody."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""Machines live on these: clients may read them, and only we write to them."""

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_CLUSTER_KEY = b"cluster"
_PRODUCER_IDS_KEY = b"producer-ids"
_TOPIC_PREFIX = b"topic/"
_BROKER_PREFIX = b"broker/"


class TopicSet(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """There is a topic on the only broker: what format 1 wrote, and is only read now."""

    name: str
    topic_id: bytes
    partitions: int
    settings: dict[str, str]


class ClusterNamed(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """The cluster has an id, for good."""

    cluster_id: str


class ProducerIdsGiven(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=3):
    """All producer ids before this one were given away."""

    next_id: int


class TopicPlaced(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=4):
    """There is a topic, and this is all about it; `replicas` has the brokers of each partition."""

    name: str
    topic_id: bytes
    replicas: list[list[NodeId]]
    settings: dict[str, str]


class BrokerSet(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=5):
    """There is a broker, and this is where."""

    node: NodeId
    host: str
    port: int
    rack: str
    directory: bytes
    incarnation: int


_Value: TypeAlias = TopicSet | ClusterNamed | ProducerIdsGiven | TopicPlaced | BrokerSet

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic of the cluster."""

    name: str
    topic_id: bytes
    replicas: tuple[Replicas, ...]
    """The brokers of each partition, its preferred leader first."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was set for it, as clients write it; the rest is as the defaults say."""

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return len(self.replicas)

    @property
    def is_internal(self) -> bool:
        """Whether a machine lives on it."""
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One broker of the cluster, as it last told of itself."""

    node: NodeId
    host: str
    port: int
    rack: str
    """Empty for nowhere in particular."""
    directory: bytes
    """The id of its data folder: a broker that lost its disk is another one."""
    incarnation: int
    """Another number means that it has started anew; 0 that it was never there yet."""

    @property
    def was_there(self) -> bool:
        """Whether it has ever been one of the cluster: one that was only admitted may never be."""
        return self.incarnation > 0


class Catalog:
    """The state that follows from all records so far."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self.cluster_id: str | None = None
        self.next_producer_id = 0
        self.buried: set[bytes] = set()
        """Ids of topics that were deleted and whose files may still be there.

        Only a tombstone puts one here, and whoever has seen to the files takes it out.
        """
        self.brokers: dict[NodeId, Registration] = {}
        """Every broker that ever told of itself, by its id."""
        self._changed: dict[bytes, None] = {}

    def take_changed(self) -> list[bytes]:
        """Return the ids of topics that were set or deleted since this was last asked, in order."""
        changed, self._changed = list(self._changed), {}
        return changed

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by its name."""
        return self._topics

    def topic(self, name: str) -> Topic:
        """Return the topic of this name; raises UnknownTopic."""
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
        """Decide what gives the cluster its id."""
        assert self.cluster_id is None, "a cluster keeps its id"
        return [_record(_CLUSTER_KEY, ClusterNamed(cluster_id=cluster_id))]

    def register(self, broker: Registration) -> list[MachineRecord]:
        """Decide what tells of a broker; raises InvalidAssignment if its id is another's."""
        known = self.brokers.get(broker.node)
        if known is not None and known.directory != broker.directory:
            raise InvalidAssignment(f"broker {broker.node} has another data folder: take a new id")
        return [_broker(broker)]

    def admit(
        self, directory: bytes, host: str, port: int, rack: str
    ) -> tuple[NodeId, list[MachineRecord]]:
        """Decide which number the broker of a data folder has; raises InvalidAssignment."""
        for known in self.brokers.values():
            if known.directory == directory:
                return known.node, []
        if len(self.brokers) >= BROKERS_MAX:
            raise InvalidAssignment(f"a cluster has at most {BROKERS_MAX} brokers")
        node = 1 + max(self.brokers, default=0)
        admitted = Registration(
            node=node, host=host, port=port, rack=rack, directory=directory, incarnation=0
        )
        return node, [_broker(admitted)]

    def create_topic(
        self,
        name: str,
        partitions: int,
        topic_id: bytes,
        settings: Mapping[str, str],
        replicas: Sequence[Replicas] | None = None,
    ) -> list[MachineRecord]:
        """Decide what creates a topic; raises InvalidTopic, InvalidSetting, TopicExists.

        Without `replicas` it is on the first broker alone.
        """
        check_name(name)
        _check_partitions(partitions)
        placed = _on_first(partitions) if replicas is None else tuple(replicas)
        _check_replicas(partitions, placed)
        resolve(settings)
        if name in self._topics:
            raise TopicExists(f"topic {name} already exists")
        self._check_collision(name)
        self._check_room(partitions)
        return [_set(Topic(name=name, topic_id=topic_id, replicas=placed, settings=settings))]

    def delete_topic(self, name: str) -> list[MachineRecord]:
        """Decide what deletes a topic; raises UnknownTopic, InvalidTopic for an internal one."""
        topic = self.topic(name)
        if topic.is_internal:
            raise InvalidTopic(f"{name} holds the broker's own state and cannot be deleted")
        return [MachineRecord(_topic_key(topic.topic_id), None)]

    def add_partitions(
        self, name: str, partitions: int, added: Sequence[Replicas] | None = None
    ) -> list[MachineRecord]:
        """Decide what gives a topic this many partitions in all; raises InvalidTopic.

        `added` are the brokers of the new ones; without it they are on the first broker alone.
        """
        topic = self.topic(name)
        _check_partitions(partitions)
        if topic.is_internal:
            raise InvalidTopic(f"{name} holds the broker's own state and cannot be changed")
        if partitions <= topic.partitions:
            raise InvalidPartitions(f"topic {name} already has {topic.partitions} partitions")
        self._check_room(partitions - topic.partitions)
        new = _on_first(partitions - topic.partitions) if added is None else tuple(added)
        replicas = topic.replicas + new
        _check_replicas(partitions, replicas)
        return [_set(_changed(topic, replicas=replicas))]

    def set_settings(self, name: str, settings: Mapping[str, str]) -> list[MachineRecord]:
        """Decide what replaces all settings of a topic; raises UnknownTopic, InvalidSetting."""
        resolve(settings)
        return [_set(_changed(self.topic(name), settings=settings))]

    def give_producer_ids(self, count: int) -> list[MachineRecord]:
        """Decide what gives away the next ids, from `next_producer_id` on."""
        given = ProducerIdsGiven(next_id=self.next_producer_id + count)
        return [_record(_PRODUCER_IDS_KEY, given)]

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, record: MachineRecord) -> None:
        """Take one record from the log; raises NewerFormat for one that we do not know."""
        if record.value is None:
            self._forget(record.key)
            return
        try:
            value = _decoder.decode(record.value)
        except msgspec.ValidationError as error:
            raise NewerFormat("the catalog", FORMAT + 1, FORMAT) from error
        match value:
            case TopicSet():
                self._put(value.name, value.topic_id, _on_first(value.partitions), value.settings)
            case TopicPlaced():
                replicas = tuple(tuple(nodes) for nodes in value.replicas)
                self._put(value.name, value.topic_id, replicas, value.settings)
            case BrokerSet():
                self.brokers[value.node] = Registration(
                    node=value.node,
                    host=value.host,
                    port=value.port,
                    rack=value.rack,
                    directory=value.directory,
                    incarnation=value.incarnation,
                )
            case ClusterNamed():
                self.cluster_id = value.cluster_id
            case ProducerIdsGiven():
                self.next_producer_id = value.next_id

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the catalog as it is now, and what is still to be removed."""
        if self.cluster_id is not None:
            yield _record(_CLUSTER_KEY, ClusterNamed(cluster_id=self.cluster_id))
        if self.next_producer_id:
            yield _record(_PRODUCER_IDS_KEY, ProducerIdsGiven(next_id=self.next_producer_id))
        for broker in self.brokers.values():
            yield _broker(broker)
        for topic in self._topics.values():
            yield _set(topic)
        for topic_id in sorted(self.buried):
            yield MachineRecord(_topic_key(topic_id), None)

    def _put(
        self,
        name: str,
        topic_id: bytes,
        replicas: tuple[Replicas, ...],
        settings: Mapping[str, str],
    ) -> None:
        topic = Topic(name=name, topic_id=topic_id, replicas=replicas, settings=settings)
        self._topics[name] = self._by_id[topic_id] = topic
        self._changed[topic_id] = None

    def _check_room(self, added: int) -> None:
        if added + sum(topic.partitions for topic in self._topics.values()) > ALL_PARTITIONS_MAX:
            raise InvalidPartitions(f"all topics together have at most {ALL_PARTITIONS_MAX}")

    def _check_collision(self, name: str) -> None:
        """Refuse what Kafka refuses: in the names of metrics a dot and an underscore are one."""
        plain = name.replace(".", "_")
        if "_" not in plain:
            return
        for other in self._topics:
            if other.replace(".", "_") == plain:
                raise InvalidTopic(f"topic {name} differs from {other} only in dots, underscores")

    def _forget(self, key: bytes) -> None:
        if not key.startswith(_TOPIC_PREFIX):
            raise NewerFormat("the catalog", FORMAT + 1, FORMAT)
        topic_id = key.removeprefix(_TOPIC_PREFIX)
        self.buried.add(topic_id)
        self._changed[topic_id] = None
        topic = self._by_id.pop(topic_id, None)
        # A tombstone may have outlived its topic, and the name may be another's by now.
        if topic is not None and self._topics.get(topic.name) is topic:
            del self._topics[topic.name]


def check_name(name: str) -> None:
    """Raise InvalidTopic unless Kafka allows this name, which is also safe as part of a path."""
    if not name or name in (".", "..") or len(name) > NAME_CHARS_MAX or not _NAME.fullmatch(name):
        raise InvalidTopic(
            f"a topic's name has 1 to {NAME_CHARS_MAX} letters, digits, dots, hyphens, underscores"
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


def _on_first(partitions: int) -> tuple[Replicas, ...]:
    return ((FIRST_BROKER,),) * partitions


def _changed(
    topic: Topic,
    *,
    replicas: tuple[Replicas, ...] | None = None,
    settings: Mapping[str, str] | None = None,
) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        replicas=topic.replicas if replicas is None else replicas,
        settings=topic.settings if settings is None else settings,
    )


def _set(topic: Topic) -> MachineRecord:
    value = TopicPlaced(
        name=topic.name,
        topic_id=topic.topic_id,
        replicas=[list(nodes) for nodes in topic.replicas],
        settings=dict(topic.settings),
    )
    return _record(_topic_key(topic.topic_id), value)


def _broker(broker: Registration) -> MachineRecord:
    value = BrokerSet(
        node=broker.node,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        directory=broker.directory,
        incarnation=broker.incarnation,
    )
    return _record(_BROKER_PREFIX + str(broker.node).encode(), value)


def _record(key: bytes, value: _Value) -> MachineRecord:
    return MachineRecord(key, _encoder.encode(value))


def _topic_key(topic_id: bytes) -> bytes:
    return _TOPIC_PREFIX + topic_id
