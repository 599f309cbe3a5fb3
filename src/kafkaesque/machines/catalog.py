"""The cluster's own metadata: its id, its topics, and which producer ids were given away.

A machine (`machines/machine.py`): what decides looks at the state and returns records, `apply`
changes it. Values are msgpack arrays whose first element is their tag
(`docs/reference/format-catalog.md`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from kafkaesque.errors import (
    InvalidPartitions,
    InvalidTopic,
    NewerFormat,
    TopicExists,
    UnknownTopic,
    UnknownTopicId,
)
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.topic_settings import resolve

FORMAT = 1
NAME_CHARS_MAX = 249
PARTITIONS_MAX = 10_000
"""Of one topic: more than any sane topic has, few enough to create in one request."""

ALL_PARTITIONS_MAX = 20_000
"""Of all topics together: each takes 15 kB of memory, and clients create topics at will."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""Machines live on these: clients may read them, and only we write to them."""

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_CLUSTER_KEY = b"cluster"
_PRODUCER_IDS_KEY = b"producer-ids"
_TOPIC_PREFIX = b"topic/"


class TopicSet(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """There is a topic, and this is all about it."""

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


_Value: TypeAlias = TopicSet | ClusterNamed | ProducerIdsGiven

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic of the cluster."""

    name: str
    topic_id: bytes
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was set for it, as clients write it; the rest is as the defaults say."""

    @property
    def is_internal(self) -> bool:
        """Whether a machine lives on it."""
        return self.name in INTERNAL_TOPICS


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

    def create_topic(
        self, name: str, partitions: int, topic_id: bytes, settings: Mapping[str, str]
    ) -> list[MachineRecord]:
        """Decide what creates a topic; raises InvalidTopic, InvalidSetting, TopicExists."""
        check_name(name)
        _check_partitions(partitions)
        resolve(settings)
        if name in self._topics:
            raise TopicExists(f"topic {name} already exists")
        self._check_collision(name)
        self._check_room(partitions)
        return [_set(Topic(name=name, topic_id=topic_id, partitions=partitions, settings=settings))]

    def delete_topic(self, name: str) -> list[MachineRecord]:
        """Decide what deletes a topic; raises UnknownTopic, InvalidTopic for an internal one."""
        topic = self.topic(name)
        if topic.is_internal:
            raise InvalidTopic(f"{name} holds the broker's own state and cannot be deleted")
        return [MachineRecord(_topic_key(topic.topic_id), None)]

    def add_partitions(self, name: str, partitions: int) -> list[MachineRecord]:
        """Decide what gives a topic this many partitions in all; raises InvalidTopic."""
        topic = self.topic(name)
        _check_partitions(partitions)
        if topic.is_internal:
            raise InvalidTopic(f"{name} holds the broker's own state and cannot be changed")
        if partitions <= topic.partitions:
            raise InvalidPartitions(f"topic {name} already has {topic.partitions} partitions")
        self._check_room(partitions - topic.partitions)
        return [_set(_changed(topic, partitions=partitions))]

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
                topic = Topic(
                    name=value.name,
                    topic_id=value.topic_id,
                    partitions=value.partitions,
                    settings=value.settings,
                )
                self._topics[topic.name] = self._by_id[topic.topic_id] = topic
            case ClusterNamed():
                self.cluster_id = value.cluster_id
            case ProducerIdsGiven():
                self.next_producer_id = value.next_id

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the catalog as it is now."""
        if self.cluster_id is not None:
            yield _record(_CLUSTER_KEY, ClusterNamed(cluster_id=self.cluster_id))
        if self.next_producer_id:
            yield _record(_PRODUCER_IDS_KEY, ProducerIdsGiven(next_id=self.next_producer_id))
        for topic in self._topics.values():
            yield _set(topic)

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


def _changed(
    topic: Topic, *, partitions: int | None = None, settings: Mapping[str, str] | None = None
) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=topic.partitions if partitions is None else partitions,
        settings=topic.settings if settings is None else settings,
    )


def _set(topic: Topic) -> MachineRecord:
    value = TopicSet(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=topic.partitions,
        settings=dict(topic.settings),
    )
    return _record(_topic_key(topic.topic_id), value)


def _record(key: bytes, value: _Value) -> MachineRecord:
    return MachineRecord(key, _encoder.encode(value))


def _topic_key(topic_id: bytes) -> bytes:
    return _TOPIC_PREFIX + topic_id
