"""The catalog's values as written to its log (`docs/reference/format-catalog.md`).

They are msgpack arrays whose first element is their tag. Fields are only ever added at the end,
with a default, so that values of earlier versions stay readable.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from kafkaesque.errors import NewerFormat
from kafkaesque.machines.catalog.catalog_values import Move, Registration, Topic
from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import NodeId

FORMAT = 7
FIRST_BROKER: NodeId = 1
"""Holds all partitions of topics that name no replicas: there was only one broker then."""

CLUSTER_KEY = b"cluster"
PRODUCER_IDS_KEY = b"producer-ids"
TOPIC_PREFIX = b"topic/"
BROKER_PREFIX = b"broker/"
REMOVED_KEY = b"removed-brokers"
FEATURES_KEY = b"features"
SETTINGS_PREFIX = b"broker-settings/"
GROUP_PREFIX = b"group-settings/"


class TopicSet(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """A topic on the only broker: written by format 1, now only read."""

    name: str
    topic_id: bytes
    partitions: int
    settings: dict[str, str]


class ClusterNamed(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """The cluster's permanent id."""

    cluster_id: str


class ProducerIdsGiven(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=3):
    """All producer ids below this one were given away."""

    next_id: int


class MovePlaced(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A partition is being moved."""

    number: int
    nodes: list[NodeId]
    leaving: list[NodeId]


class TopicPlaced(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=4):
    """All about a topic; `replicas` has the brokers of each partition."""

    name: str
    topic_id: bytes
    replicas: list[list[NodeId]]
    settings: dict[str, str]
    moves: dict[int, MovePlaced] = {}
    moves_begun: int = 0
    moved: list[int] = []


class BrokerSet(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=5):
    """A broker and its address."""

    node: NodeId
    host: str
    port: int
    rack: str
    directory: bytes
    incarnation: int
    is_draining: bool = False
    levels: dict[str, tuple[int, int]] = {}
    """Written at every level: it must be known before a level that includes it can be finalised.
    Older versions ignore it, and what they rewrite without it counts as theirs."""


class BrokersRemoved(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=6):
    """These brokers were removed, and their numbers are never given again."""

    nodes: list[NodeId]


class FeaturesSet(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=7):
    """The cluster works at these levels; only written from the level that knows this record."""

    levels: dict[str, int]
    epoch: int


class BrokerSettingsSet(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=8):
    """The settings of a broker, or of all; only written from the level that knows this record."""

    node: NodeId
    settings: dict[str, str]


class GroupSettingsSet(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=9):
    """The settings of a group; only written from the level that knows this record."""

    group: str
    settings: dict[str, str]


Value: TypeAlias = (
    TopicSet
    | ClusterNamed
    | ProducerIdsGiven
    | TopicPlaced
    | BrokerSet
    | BrokersRemoved
    | FeaturesSet
    | BrokerSettingsSet
    | GroupSettingsSet
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Value] = msgspec.msgpack.Decoder(Value)


def decode(data: bytes) -> Value:
    """Return the value of a record; raises NewerFormat for an unknown one."""
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError as error:
        raise newer_format() from error


def newer_format() -> NewerFormat:
    """Return the error for a record that only a later version can have written."""
    return NewerFormat("the catalog", FORMAT + 1, FORMAT)


def record(key: bytes, value: Value) -> MachineRecord:
    """Return the record that sets `key` to `value`."""
    return MachineRecord(key, _encoder.encode(value))


def on_first(partitions: int) -> tuple[Replicas, ...]:
    """Return the replicas of a topic on the first broker alone."""
    return ((FIRST_BROKER,),) * partitions


def topic_key(topic_id: bytes) -> bytes:
    """Return the key of a topic."""
    return TOPIC_PREFIX + topic_id


def broker_key(node: NodeId) -> bytes:
    """Return the key of a broker."""
    return BROKER_PREFIX + str(node).encode()


def settings_key(node: NodeId) -> bytes:
    """Return the key of a broker's settings."""
    return SETTINGS_PREFIX + str(node).encode()


def settings_record(node: NodeId, settings: Mapping[str, str]) -> MachineRecord:
    """Return the record of a broker's settings; without a value none are set."""
    if not settings:
        return MachineRecord(settings_key(node), None)
    return record(settings_key(node), BrokerSettingsSet(node=node, settings=dict(settings)))


def group_settings_record(group: str, settings: Mapping[str, str]) -> MachineRecord:
    """Return the record of a group's settings; without a value none are set."""
    key = GROUP_PREFIX + group.encode()
    if not settings:
        return MachineRecord(key, None)
    return record(key, GroupSettingsSet(group=group, settings=dict(settings)))


def topic_record(topic: Topic) -> MachineRecord:
    """Return the record of a topic."""
    value = TopicPlaced(
        name=topic.name,
        topic_id=topic.topic_id,
        replicas=[list(nodes) for nodes in topic.replicas],
        settings=dict(topic.settings),
        moves={
            index: MovePlaced(
                number=move.number, nodes=list(move.nodes), leaving=list(move.leaving)
            )
            for index, move in topic.moves.items()
        },
        moves_begun=topic.moves_begun,
        moved=sorted(topic.moved),
    )
    return record(topic_key(topic.topic_id), value)


def topic_of(value: TopicSet | TopicPlaced) -> Topic:
    """Return the topic that a value describes."""
    if isinstance(value, TopicSet):
        return Topic(
            name=value.name,
            topic_id=value.topic_id,
            replicas=on_first(value.partitions),
            settings=value.settings,
        )
    return Topic(
        name=value.name,
        topic_id=value.topic_id,
        replicas=tuple(tuple(nodes) for nodes in value.replicas),
        settings=value.settings,
        moves={
            index: Move(number=move.number, nodes=tuple(move.nodes), leaving=tuple(move.leaving))
            for index, move in value.moves.items()
        },
        moves_begun=value.moves_begun,
        moved=frozenset(value.moved),
    )


def broker_record(broker: Registration) -> MachineRecord:
    """Return the record of a broker."""
    value = BrokerSet(
        node=broker.node,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        directory=broker.directory,
        incarnation=broker.incarnation,
        is_draining=broker.is_draining,
        levels=dict(broker.levels),
    )
    return record(broker_key(broker.node), value)


def broker_of(value: BrokerSet) -> Registration:
    """Return the broker that a value describes."""
    return Registration(
        node=value.node,
        host=value.host,
        port=value.port,
        rack=value.rack,
        directory=value.directory,
        incarnation=value.incarnation,
        is_draining=value.is_draining,
        levels=value.levels,
    )
