"""What may be asked of the catalog by any broker, and what its leader answers: plain values.

They travel between brokers, as msgpack arrays whose first element is their tag. A broker that asks
and hears nothing more must take the outcome for `Unknown`: the command may have been carried out.
"""

from typing import TypeAlias

import msgspec

from kafkaesque import errors
from kafkaesque.errors import KafkaesqueError, NotLeader
from kafkaesque.machines import feature_errors
from kafkaesque.types import NodeId, Offset

DEFAULT_REPLICATION = -1
"""As many replicas as the leader of the catalog finds right."""


class CreateTopic(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """Let there be a topic; without an assignment its replicas are placed by the leader."""

    name: str
    topic_id: bytes
    partitions: int
    replication: int
    settings: dict[str, str]
    assignment: list[list[NodeId]] = []


class DeleteTopic(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """Let a topic be gone."""

    name: str


class AddPartitions(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=3):
    """Let a topic have this many partitions in all."""

    name: str
    partitions: int
    assignment: list[list[NodeId]] = []
    """The brokers of the new partitions; without them the leader places their replicas."""


class SetSettings(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=4):
    """Replace what was set for a topic; refused if that is not what is expected."""

    name: str
    settings: dict[str, str]
    expected: dict[str, str] | None = None


class TakeProducerIds(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=5):
    """Give that many producer ids away, to the one who asks."""

    count: int


class RegisterBroker(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=6):
    """A broker has started: this is who and where it is."""

    node: NodeId
    host: str
    port: int
    rack: str
    directory: bytes
    incarnation: int
    levels: dict[str, tuple[int, int]] = {}


class AdmitBroker(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=7):
    """Give a broker with a new data folder its number; the same folder gets the same one again."""

    directory: bytes
    host: str
    port: int
    rack: str
    levels: dict[str, tuple[int, int]] = {}


class MovePartitions(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=8):
    """Move partitions to these brokers; one that names no brokers has its move called off."""

    moves: list[tuple[bytes, int, list[NodeId]]]
    """The id of the topic, the partition, the brokers with the preferred leader first."""


class FinishMove(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=9):
    """The group of a partition has exactly these voters, as its move of this number wanted."""

    topic_id: bytes
    partition: int
    nodes: list[NodeId]
    number: int


class DrainBroker(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=10):
    """Put nothing new on a broker from now on, or do so again."""

    node: NodeId
    is_draining: bool


class RemoveBroker(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=11):
    """Forget a broker that holds nothing."""

    node: NodeId


class FinalizeFeatures(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=12):
    """Let the whole cluster work at these levels."""

    levels: dict[str, int]
    can_lower: bool = False


class SetBrokerSettings(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=13):
    """Replace what was set for a broker, or for all; refused if that is not what is expected."""

    node: NodeId
    settings: dict[str, str]
    expected: dict[str, str] | None = None


Command: TypeAlias = (
    CreateTopic
    | DeleteTopic
    | AddPartitions
    | SetSettings
    | TakeProducerIds
    | RegisterBroker
    | AdmitBroker
    | MovePartitions
    | FinishMove
    | DrainBroker
    | RemoveBroker
    | FinalizeFeatures
    | SetBrokerSettings
)


class Carried(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """It is committed; a copy of the catalog that reaches `end` shows it."""

    end: Offset
    first_id: int = -1
    """Of the producer ids, if such were taken; the number of a broker that was admitted."""


class Refused(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """Nothing was done; `error` is the name of the reason's class."""

    error: str
    text: str


class Unknown(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=3):
    """It may have been done or not."""


Reply: TypeAlias = Carried | Refused | Unknown


def to_refusal(error: KafkaesqueError) -> Refused:
    """Return the value that tells another broker of an error."""
    return Refused(error=type(error).__name__, text=str(error))


def to_error(refusal: Refused) -> KafkaesqueError:
    """Return the error that another broker told of; one that we do not know is a BrokerError."""
    if refusal.error in _NOBODY_LEADS:
        return NotLeader(None)
    found = _ERRORS.get(refusal.error, errors.BrokerError)
    return found(refusal.text)


_NOBODY_LEADS = frozenset(
    kind.__name__
    for kind in (
        NotLeader,
        errors.LeaderNotReady,
        errors.ChangeInProgress,
        errors.PeerUnreachable,
    )
)
"""Of these nothing was done, and another may soon lead."""

_ERRORS = {
    kind.__name__: kind
    for kind in (
        errors.BrokerInUse,
        errors.BrokerRemoved,
        errors.InvalidAssignment,
        feature_errors.InvalidLevel,
        errors.InvalidPartitions,
        errors.InvalidReplicas,
        errors.InvalidSetting,
        errors.InvalidTopic,
        errors.NoMove,
        errors.SettingsChanged,
        errors.TopicExists,
        errors.UnknownBroker,
        errors.UnknownTopic,
        errors.UnknownTopicId,
        feature_errors.UnsupportedLevel,
        errors.DiskFull,
    )
}
"""What a catalog refuses with; all are made from their sentence."""
