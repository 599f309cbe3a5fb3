"""The cluster's own metadata: its id and its topics.

A machine: `create_topic` and the like look at the state and return records, without changing it;
`apply` changes it. Records are msgpack arrays whose first element is their tag
(`docs/reference/format-catalog.md`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from kafkaesque.errors import InvalidTopic, NewerFormat, TopicExists

FORMAT = 1
NAME_CHARS_MAX = 249
PARTITIONS_MAX = 10_000
"""Of one topic: more than any sane topic has, few enough to create in one request."""

_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class TopicCreated(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """There is a new topic."""

    name: str
    topic_id: bytes
    partitions: int


class ClusterNamed(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """The cluster has an id, for good."""

    cluster_id: str


CatalogRecord: TypeAlias = TopicCreated | ClusterNamed

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(CatalogRecord)


def encode_record(record: CatalogRecord) -> bytes:
    """Return a record as it lies in the log."""
    return _encoder.encode(record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic of the cluster."""

    name: str
    topic_id: bytes
    partitions: int


class Catalog:
    """The state that follows from all records so far."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self.cluster_id: str | None = None

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by its name."""
        return self._topics

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """Return the topic with this id."""
        return self._by_id.get(topic_id)

    def create_topic(self, name: str, partitions: int, topic_id: bytes) -> list[CatalogRecord]:
        """Decide what creates a topic; raises InvalidTopic or TopicExists."""
        check_name(name)
        if not 1 <= partitions <= PARTITIONS_MAX:
            raise InvalidTopic(f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}")
        if name in self._topics:
            raise TopicExists(f"topic {name} already exists")
        return [TopicCreated(name=name, topic_id=topic_id, partitions=partitions)]

    def apply(self, data: bytes) -> None:
        """Take one record from the log; raises NewerFormat for one that we do not know."""
        try:
            record = _decoder.decode(data)
        except msgspec.ValidationError as error:
            raise NewerFormat("the catalog", FORMAT + 1, FORMAT) from error
        match record:
            case TopicCreated():
                topic = Topic(
                    name=record.name, topic_id=record.topic_id, partitions=record.partitions
                )
                self._topics[topic.name] = self._by_id[topic.topic_id] = topic
            case ClusterNamed():
                assert self.cluster_id is None, "a cluster keeps its id"
                self.cluster_id = record.cluster_id


def check_name(name: str) -> None:
    """Raise InvalidTopic unless Kafka allows this name, which is also safe as part of a path."""
    if not name or name in (".", "..") or len(name) > NAME_CHARS_MAX or not _NAME.fullmatch(name):
        raise InvalidTopic(
            f"a topic's name has 1 to {NAME_CHARS_MAX} letters, digits, dots, hyphens, underscores"
        )
