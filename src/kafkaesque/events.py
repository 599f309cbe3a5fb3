"""Events that operators want to know about, reported where they occur.

The core reports them to one port (`Events`) and writes no log itself. The edge
(`server/edge/event_log.py`) turns an event into a log line and a count in the metrics. An event's
docstring is its text in the log and on the events page: what it means, and what to do.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Protocol

from msgspec import Struct, field

from kafkaesque.types import GroupId, NodeId, Offset, Term


class Level(StrEnum):
    """How urgent a log line is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Component(StrEnum):
    """The part of a broker that an event is about: each has its own log level."""

    RAFT = "raft"
    LOG = "log"
    DISK = "disk"
    CLUSTER = "cluster"
    CLIENTS = "clients"
    CLOCK = "clock"


class Event(Struct, frozen=True, kw_only=True):
    """One event. A field `text` is the sentence of its line; other fields print as `key=value`."""

    name: ClassVar[str]
    level: ClassVar[Level] = Level.INFO
    component: ClassVar[Component]


class Events(Protocol):
    """Receives events as they happen; passed through constructors."""

    def tell(self, event: Event) -> None:
        """Receive one event; must not fail or call back."""
        ...


# ── raft ─────────────────────────────────────────────────────────────────────────────────────────


class LeaderElected(Event, frozen=True, kw_only=True):
    """This broker was elected leader of the partition; not reported for its only replica."""

    name = "leader_elected"
    component = Component.RAFT
    partition: GroupId
    term: Term


class LeadershipLost(Event, frozen=True, kw_only=True):
    """This broker no longer leads the partition; `leader` is the new leader, if known."""

    name = "leadership_lost"
    component = Component.RAFT
    partition: GroupId
    term: Term
    leader: NodeId | None


class VotersChanged(Event, frozen=True, kw_only=True):
    """A change of the group's voters is committed; reported by the leader."""

    name = "voters_changed"
    component = Component.RAFT
    partition: GroupId
    voters: tuple[NodeId, ...]
    learners: tuple[NodeId, ...]


class ReplicaStopped(Event, frozen=True, kw_only=True):
    """The replica has stopped until the broker restarts or its log is refilled. Check the disk,
    then restart the broker."""

    name = "replica_stopped"
    level = Level.ERROR
    component = Component.RAFT
    partition: GroupId
    reason: str


class ReplicaRecovered(Event, frozen=True, kw_only=True):
    """The replica has caught up with everything committed, and votes again."""

    name = "replica_recovered"
    component = Component.RAFT
    partition: GroupId


# ── log ──────────────────────────────────────────────────────────────────────────────────────────


class LogTruncated(Event, frozen=True, kw_only=True):
    """Uncommitted records were cut from the end of the log, because a leader without them was
    elected. They were never acknowledged to a producer that uses `acks=all`."""

    name = "log_truncated"
    component = Component.LOG
    partition: GroupId
    offset: Offset
    records: int


class DamageFound(Event, frozen=True, kw_only=True):
    """The disk returned data that differs from what was written. It is repaired from other replicas
    where they hold it; check the disk, and run `kafkaesque doctor`."""

    name = "damage_found"
    level = Level.ERROR
    component = Component.LOG
    partition: GroupId
    offset: Offset | None = None
    reason: str


class DamageNotNoted(Event, frozen=True, kw_only=True):
    """The damage could not be recorded: this run knows of it, and the next finds it again. Check
    the disk."""

    name = "damage_not_noted"
    level = Level.ERROR
    component = Component.LOG
    partition: GroupId
    reason: str


class TailLost(Event, frozen=True, kw_only=True):
    """The disk lost synced and acknowledged data from this offset; the replica does not vote until
    a leader has sent it again. Replace the disk, or make it write through."""

    name = "tail_lost"
    level = Level.ERROR
    component = Component.LOG
    partition: GroupId
    offset: Offset


class SealsLost(Event, frozen=True, kw_only=True):
    """The seals of closed segments are unusable; the scrub seals intact segments again."""

    name = "seals_lost"
    level = Level.WARNING
    component = Component.LOG
    partition: GroupId
    reason: str


class ScrubFailed(Event, frozen=True, kw_only=True):
    """The scrub could not read the log; the next pass tries again. If it happens again, check the
    disk."""

    name = "scrub_failed"
    level = Level.WARNING
    component = Component.LOG
    partition: GroupId
    reason: str


class RepairBegun(Event, frozen=True, kw_only=True):
    """A damaged segment is being repaired from another broker."""

    name = "repair_begun"
    component = Component.LOG
    partition: GroupId
    offset: Offset
    source: NodeId = field(name="from")


class RepairDone(Event, frozen=True, kw_only=True):
    """The offsets from `first` up to `end` are intact again."""

    name = "repair_done"
    component = Component.LOG
    partition: GroupId
    first: Offset
    end: Offset
    bytes: int
    source: NodeId = field(name="from")


class RepairFailed(Event, frozen=True, kw_only=True):
    """No other broker could repair the damage; the repair is retried. Start brokers that are
    down."""

    name = "repair_failed"
    level = Level.WARNING
    component = Component.LOG
    partition: GroupId
    reason: str


class RefillWaits(Event, frozen=True, kw_only=True):
    """A damaged copy is not refilled yet, because too few other copies are intact. Bring those back
    first."""

    name = "refill_waits"
    level = Level.WARNING
    component = Component.LOG
    partition: GroupId
    reason: str


class RefillBegun(Event, frozen=True, kw_only=True):
    """The damaged log was set aside; the other replicas fill a new one."""

    name = "refill_begun"
    level = Level.WARNING
    component = Component.LOG
    partition: GroupId
    reason: str


class PartitionOffline(Event, frozen=True, kw_only=True):
    """The log cannot be opened, and no other broker can refill it. Restore its folder from a copy
    while the broker is stopped, or delete the topic; all other partitions are served."""

    name = "partition_offline"
    level = Level.ERROR
    component = Component.LOG
    partition: GroupId
    reason: str


class OldCopyTold(Event, frozen=True, kw_only=True):
    """Broker `peer` remembers newer data than this data folder holds. What other brokers hold is
    fetched from them again; where this broker is alone, everything acknowledged since the copy was
    made is lost."""

    name = "old_copy"
    level = Level.ERROR
    component = Component.LOG
    peer: NodeId
    groups: int
    alone: int


class OldCopyLacks(Event, frozen=True, kw_only=True):
    """The partition's data cannot be fetched again: the data folder was an old copy, and no other
    broker holds the partition."""

    name = "old_copy_lacks"
    level = Level.ERROR
    component = Component.LOG
    partition: GroupId


class LogRebuilt(Event, frozen=True, kw_only=True):
    """No other broker holds the partition: it continues from its segments."""

    name = "log_rebuilt"
    level = Level.WARNING
    component = Component.LOG
    partition: GroupId
    end: Offset
    unreadable_bytes: int


class LogNotRebuilt(Event, frozen=True, kw_only=True):
    """No other broker holds the partition, and its segments cannot be read. Restore its folder from
    a backup while the broker is stopped."""

    name = "log_not_rebuilt"
    level = Level.ERROR
    component = Component.LOG
    partition: GroupId
    reason: str


class JournalMended(Event, frozen=True, kw_only=True):
    """One of the two copies of the journal's state was damaged; the next round writes both
    again."""

    name = "journal_mended"
    level = Level.WARNING
    component = Component.LOG
    node: NodeId
    copy: str


class JournalLost(Event, frozen=True, kw_only=True):
    """This broker starts over in all its groups; it has no vote there until the others have sent it
    what they hold."""

    name = "journal_lost"
    level = Level.ERROR
    component = Component.LOG


# ── disk ─────────────────────────────────────────────────────────────────────────────────────────


class DiskFull(Event, frozen=True, kw_only=True):
    """Records are refused until the disk has room. Free space, or keep less."""

    name = "disk_full"
    level = Level.ERROR
    component = Component.DISK
    folder: str
    free_bytes: int


class DiskHasRoom(Event, frozen=True, kw_only=True):
    """Pending data is written, and records are accepted again."""

    name = "disk_has_room"
    component = Component.DISK
    folder: str
    free_bytes: int


class SlowSync(Event, frozen=True, kw_only=True):
    """A sync round took longer than `log.slow_sync_ms`, and producers waited for it. If it happens
    often, the disk is busy or failing."""

    name = "slow_sync"
    component = Component.DISK
    took_ms: int


class RemovalFailed(Event, frozen=True, kw_only=True):
    """A deleted or moved partition's folder could not be removed; the next start tries again."""

    name = "removal_failed"
    level = Level.WARNING
    component = Component.DISK
    folder: str
    reason: str


class FoldersOfNoTopic(Event, frozen=True, kw_only=True):
    """These folders belong to no topic and are left alone. Remove them by hand if they are not
    needed."""

    name = "folders_of_no_topic"
    level = Level.WARNING
    component = Component.DISK
    count: int
    folders: tuple[str, ...]


# ── cluster ──────────────────────────────────────────────────────────────────────────────────────


class MoveBegun(Event, frozen=True, kw_only=True):
    """The partition moves, or its move was cancelled and it moves back. Each broker that holds it
    reports this."""

    name = "move_begun"
    component = Component.CLUSTER
    partition: GroupId
    source: tuple[NodeId, ...] = field(name="from")
    to: tuple[NodeId, ...]


class MoveEnded(Event, frozen=True, kw_only=True):
    """The partition is on these brokers now, and on no others."""

    name = "move_ended"
    component = Component.CLUSTER
    partition: GroupId
    nodes: tuple[NodeId, ...]


class MovesBegun(Event, frozen=True, kw_only=True):
    """The cluster moves partitions of the topic on its own: a broker was added, is drained, or was
    away for too long. Reported by the catalog leader."""

    name = "moves_begun"
    component = Component.CLUSTER
    topic: str
    count: int


class MovesNotBegun(Event, frozen=True, kw_only=True):
    """The cluster could not start to move partitions of the topic on its own; it tries again
    soon."""

    name = "moves_not_begun"
    component = Component.CLUSTER
    topic: str
    reason: str


class LostBrokersUnreadable(Event, frozen=True, kw_only=True):
    """The brokers given up by `kafkaesque cluster recover` cannot be read: drain them by hand."""

    name = "lost_brokers_unreadable"
    level = Level.WARNING
    component = Component.CLUSTER
    path: str


class LostBrokersDrained(Event, frozen=True, kw_only=True):
    """The brokers that `kafkaesque cluster recover` gave up are drained."""

    name = "lost_brokers_drained"
    component = Component.CLUSTER
    nodes: tuple[NodeId, ...]


class LostBrokersKept(Event, frozen=True, kw_only=True):
    """The list of brokers given up could not be removed; the next start removes it."""

    name = "lost_brokers_kept"
    level = Level.WARNING
    component = Component.CLUSTER
    reason: str


class SettingsRefused(Event, frozen=True, kw_only=True):
    """The new settings contradict this broker's configuration; the previous run-time settings stay
    in force."""

    name = "settings_refused"
    level = Level.ERROR
    component = Component.CLUSTER
    reason: str


class ProblemBegun(Event, frozen=True, kw_only=True):
    """A lasting problem that no other event of this run has reported. `kafkaesque doctor` says what
    to do."""

    name = "problem"
    level = Level.ERROR
    component = Component.CLUSTER
    kind: str
    text: str


class ProblemOver(Event, frozen=True, kw_only=True):
    """A reported problem is over."""

    name = "problem_over"
    component = Component.CLUSTER
    kind: str


# ── clients ──────────────────────────────────────────────────────────────────────────────────────


class ConnectionClosed(Event, frozen=True, kw_only=True):
    """The broker closed a connection because of the limit or rule that it broke."""

    name = "connection_closed"
    level = Level.WARNING
    component = Component.CLIENTS
    reason: str
    peer: str
    text: str


class ConnectionsClosed(Event, frozen=True, kw_only=True):
    """A storm of connections: this many more were closed in a second than have lines. See
    kafkaesque_connections_refused_total, and find out who connects so often."""

    name = "connections_closed"
    level = Level.WARNING
    component = Component.CLIENTS
    more: int


# ── clock ────────────────────────────────────────────────────────────────────────────────────────


class ClockInDoubt(Event, frozen=True, kw_only=True):
    """The wall clock cannot be trusted, so nothing is deleted by age. Correct the clocks of all
    brokers, for instance by NTP."""

    name = "clock_in_doubt"
    level = Level.WARNING
    component = Component.CLOCK
    node: NodeId
    text: str


class ClockBelieved(Event, frozen=True, kw_only=True):
    """Deletion by age resumes."""

    name = "clock_believed"
    level = Level.WARNING
    component = Component.CLOCK
    node: NodeId


# ── the log itself ───────────────────────────────────────────────────────────────────────────────


class EventsLeftOut(Event, frozen=True, kw_only=True):
    """More of these events happened in a second than `events.lines_per_second_max`; all are
    counted. The line has the level and the component of the events left out."""

    name = "events_left_out"
    component = Component.CLUSTER
    event: str = field(name="name")
    more: int


EVENTS: Mapping[str, type[Event]] = {one.name: one for one in Event.__subclasses__()}
"""Every event by its name."""


def meaning(event: type[Event]) -> str:
    """Return what an event means, and what to do."""
    return " ".join((event.__doc__ or "").split())
