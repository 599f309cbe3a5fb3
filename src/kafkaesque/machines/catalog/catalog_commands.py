"""Commands that any broker may send to the catalog, and its leader's answers: plain values.

They travel between brokers as msgpack arrays whose first element is their tag. A broker that gets
no answer must treat the outcome as `Unknown`: the command may have been carried out.
"""

from typing import TypeAlias

import msgspec

from kafkaesque import errors
from kafkaesque.errors import KafkaesqueError, NotLeader
from kafkaesque.machines.catalog import catalog_errors
from kafkaesque.types import NodeId, Offset

DEFAULT_REPLICATION = -1
"""As many replicas as the catalog's leader thinks right."""


class CreateTopic(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """Create a topic; without an assignment the leader places its replicas."""

    name: str
    topic_id: bytes
    partitions: int
    replication: int
    settings: dict[str, str]
    assignment: list[list[NodeId]] = []


class DeleteTopic(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """Delete a topic."""

    name: str


class AddPartitions(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=3):
    """Grow a topic to this many partitions in all."""

    name: str
    partitions: int
    assignment: list[list[NodeId]] = []
    """The brokers of the new partitions; without them the leader places the replicas."""


class SetSettings(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=4):
    """Replace the settings of a topic; refused if they are not the expected ones."""

    name: str
    settings: dict[str, str]
    expected: dict[str, str] | None = None


class TakeProducerIds(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=5):
    """Give this many producer ids to the caller."""

    count: int


class RegisterBroker(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=6):
    """A broker has started: its identity and address."""

    node: NodeId
    host: str
    port: int
    rack: str
    directory: bytes
    incarnation: int
    levels: dict[str, tuple[int, int]] = {}


class AdmitBroker(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=7):
    """Give a broker with a new data folder its number; the same folder always gets the same one."""

    directory: bytes
    host: str
    port: int
    rack: str
    levels: dict[str, tuple[int, int]] = {}


class MovePartitions(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=8):
    """Move partitions to these brokers; one without brokers has its move called off."""

    moves: list[tuple[bytes, int, list[NodeId]]]
    """The topic's id, the partition, the brokers with the preferred leader first."""


class FinishMove(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=9):
    """The group of a partition has exactly the voters that the move of this number wanted."""

    topic_id: bytes
    partition: int
    nodes: list[NodeId]
    number: int


class DrainBroker(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=10):
    """Stop placing new replicas on a broker, or resume."""

    node: NodeId
    is_draining: bool


class RemoveBroker(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=11):
    """Remove a broker that holds nothing."""

    node: NodeId


class FinalizeFeatures(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=12):
    """Make the whole cluster work at these levels."""

    levels: dict[str, int]
    can_lower: bool = False


class SetBrokerSettings(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=13):
    """Replace the settings of a broker, or of all; refused if they are not the expected ones."""

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
    """Committed; a copy of the catalog that reaches `end` shows it."""

    end: Offset
    first_id: int = -1
    """The first producer id taken, or the number of the admitted broker."""


class Refused(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """Nothing was done; `error` is the class name of the reason."""

    error: str
    text: str


class Unknown(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=3):
    """It may or may not have been done."""


Reply: TypeAlias = Carried | Refused | Unknown


def to_refusal(error: KafkaesqueError) -> Refused:
    """Return the value that carries an error to another broker."""
    return Refused(error=type(error).__name__, text=str(error))


def to_error(refusal: Refused) -> KafkaesqueError:
    """Return the error another broker sent; an unknown one becomes a BrokerError."""
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
"""With these nothing was done, and another broker may soon lead."""

_ERRORS = {
    kind.__name__: kind
    for kind in (
        catalog_errors.BrokerInUse,
        catalog_errors.BrokerRemoved,
        catalog_errors.InvalidAssignment,
        catalog_errors.InvalidLevel,
        catalog_errors.InvalidPartitions,
        catalog_errors.InvalidReplicas,
        errors.InvalidSetting,
        errors.InvalidTopic,
        catalog_errors.NoMove,
        catalog_errors.SettingsChanged,
        errors.TopicExists,
        catalog_errors.UnknownBroker,
        errors.UnknownTopic,
        catalog_errors.UnknownTopicId,
        catalog_errors.UnsupportedLevel,
        errors.DiskFull,
    )
}
"""What a catalog refuses with; each is made from its message."""
