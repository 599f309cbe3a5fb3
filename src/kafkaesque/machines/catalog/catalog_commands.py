"""Commands that any broker may send to the catalog, and its leader's answers: plain values.

They travel between brokers as msgpack arrays whose first element is their tag. A broker that gets
no answer must treat the outcome as `Unknown`: the command may have been carried out.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from kafkaesque import errors
from kafkaesque.errors import KafkaesqueError, NotLeader, OutcomeUnknown
from kafkaesque.machines.catalog import catalog_errors
from kafkaesque.machines.decision import Command
from kafkaesque.types import NodeId, Offset

DEFAULT_REPLICATION = -1
"""As many replicas as the catalog's leader thinks right."""


NO_NUMBER = -1
"""The command gives out none."""


class Carried(Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """Committed; a copy of the catalog that reaches `end` shows it."""

    end: Offset
    first_id: int = NO_NUMBER
    """The first producer id taken, or the number of the admitted broker."""


class Refused(Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """Nothing was done; `error` is the class name of the reason."""

    error: str
    text: str


class Unknown(Struct, array_like=True, frozen=True, kw_only=True, tag=3):
    """It may or may not have been done."""


class CreateTopic(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=1):
    """Create a topic; without an assignment the leader places its replicas."""

    name: str
    topic_id: bytes
    partitions: int
    replication: int
    settings: dict[str, str]
    assignment: list[list[NodeId]] = field(default_factory=list)


class DeleteTopic(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=2):
    """Delete a topic."""

    name: str


class AddPartitions(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=3):
    """Grow a topic to this many partitions in all."""

    name: str
    partitions: int
    assignment: list[list[NodeId]] = field(default_factory=list)
    """The brokers of the new partitions; without them the leader places the replicas."""


class SetSettings(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=4):
    """Replace the settings of a topic; refused if they are not the expected ones."""

    name: str
    settings: dict[str, str]
    expected: dict[str, str] | None = None


class TakeProducerIds(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=5):
    """Give this many producer ids to the caller."""

    count: int


class RegisterBroker(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=6):
    """A broker has started: its identity and address."""

    node: NodeId
    host: str
    port: int
    rack: str
    directory: bytes
    incarnation: int
    levels: dict[str, tuple[int, int]] = field(default_factory=dict)


class AdmitBroker(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=7):
    """Give a broker with a new data folder its number; the same folder always gets the same one."""

    directory: bytes
    host: str
    port: int
    rack: str
    levels: dict[str, tuple[int, int]] = field(default_factory=dict)


class MovePartitions(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=8):
    """Move partitions to these brokers; one without brokers has its move called off."""

    moves: list[tuple[bytes, int, list[NodeId]]]
    """The topic's id, the partition, the brokers with the preferred leader first."""


class FinishMove(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=9):
    """The group of a partition has exactly the voters that the move of this number wanted."""

    topic_id: bytes
    partition: int
    nodes: list[NodeId]
    number: int


class DrainBroker(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=10):
    """Stop placing new replicas on a broker, or resume."""

    node: NodeId
    is_draining: bool


class RemoveBroker(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=11):
    """Remove a broker that holds nothing."""

    node: NodeId


class FinalizeFeatures(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=12):
    """Make the whole cluster work at these levels."""

    levels: dict[str, int]
    can_lower: bool = False


class SetBrokerSettings(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=13):
    """Replace the settings of a broker, or of all; refused if they are not the expected ones."""

    node: NodeId
    settings: dict[str, str]
    expected: dict[str, str] | None = None


class SetGroupSettings(Command[Carried], array_like=True, frozen=True, kw_only=True, tag=14):
    """Replace the settings of a group; refused if they are not the expected ones."""

    group: str
    settings: dict[str, str]
    expected: dict[str, str] | None = None


CatalogCommand: TypeAlias = (
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
    | SetGroupSettings
)


class NameCluster(Command[Carried], frozen=True, kw_only=True):
    """Begin a cluster at the highest levels of its first broker; it has no name yet.

    Its leader's own command: it never travels.
    """

    cluster_id: str
    levels: Mapping[str, tuple[int, int]]


CatalogAnswer: TypeAlias = Carried | KafkaesqueError
"""With OutcomeUnknown the command may have been carried out; after any other error it was not."""

AnswerTo: TypeAlias = Callable[[CatalogAnswer], None]
AskCatalog: TypeAlias = Callable[[CatalogCommand, AnswerTo], None]

Reply: TypeAlias = Carried | Refused | Unknown


def to_reply(answer: CatalogAnswer) -> Reply:
    """Return the value that carries an answer to another broker."""
    match answer:
        case Carried():
            return answer
        case OutcomeUnknown():
            return Unknown()
        case error:
            return to_refusal(error)


def to_answer(reply: Reply) -> CatalogAnswer:
    """Return the answer another broker sent."""
    match reply:
        case Carried():
            return reply
        case Refused():
            return to_error(reply)
        case Unknown():
            return outcome_unknown()


def outcome_unknown() -> OutcomeUnknown:
    """Return the error for a change that may or may not be made."""
    return OutcomeUnknown("leadership was lost; check whether the change was made")


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
