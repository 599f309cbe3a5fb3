"""The journal's records about a group, and the state that follows from them.

Each record is a msgpack array whose first element is its tag (`docs/reference/format-journal.md`).
Replaying a group's records gives its `GroupState`; `snapshot` returns the shortest list of records
that gives the same state.
"""

from typing import TypeAlias

import msgspec

from kafkaesque.entry import HardState, LogStart, TermOpened, Voters
from kafkaesque.log.marks import Marks
from kafkaesque.log.segments import SyncedPoint
from kafkaesque.types import NO_TERM, GroupId, Index, NodeId, Offset, Term


class _Record(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    group: GroupId


class LogStarted(_Record, tag=1, kw_only=True, frozen=True):
    """The group's log starts here; with `is_reset`, its previous content is dropped."""

    offset: Offset
    marks_before: int
    prev_term: Term
    voters: list[NodeId]
    learners: list[NodeId]
    visible_offset: Offset
    is_reset: bool
    move: int = 0


class StateSaved(_Record, tag=2, kw_only=True, frozen=True):
    """The replica's term and vote."""

    term: Term
    vote: NodeId | None


class TermMarked(_Record, tag=3, kw_only=True, frozen=True):
    """A `TermOpened` mark."""

    index: Index
    term: Term


class VotersMarked(_Record, tag=4, kw_only=True, frozen=True):
    """A `Voters` mark."""

    index: Index
    term: Term
    voters: list[NodeId]
    learners: list[NodeId]
    move: int = 0


class MarksCut(_Record, tag=5, kw_only=True, frozen=True):
    """The marks at and after this index are gone."""

    index: Index


class SyncedTo(_Record, tag=6, kw_only=True, frozen=True):
    """The segments were durable up to here."""

    segment_base: Offset
    position: int
    end_offset: Offset
    checksum: int | None = None


class RecoverySet(_Record, tag=7, kw_only=True, frozen=True):
    """Whether the replica lost synced data and must not vote until it has been refilled."""

    is_recovering: bool


class HolesAllowed(_Record, tag=9, kw_only=True, frozen=True):
    """From here on offsets may be missing between batches, because of compaction."""


class GroupForgotten(_Record, tag=8, kw_only=True, frozen=True):
    """The group's replica was removed from this node."""


class LossAllowed(_Record, tag=10, kw_only=True, frozen=True):
    """Whether batches count before they are synced, so that a power loss may lose some."""

    is_allowed: bool


class RunBegan(_Record, tag=11, kw_only=True, frozen=True):
    """The node has started, in this boot of its machine; the group is empty."""

    boot: str


class RunEnded(_Record, tag=12, kw_only=True, frozen=True):
    """The node has stopped cleanly with everything synced; the group is empty."""


class PeerHeard(_Record, tag=13, kw_only=True, frozen=True):
    """The newest run and journal round that another broker announced; the group is empty."""

    node: NodeId
    run: int
    session: int
    round: int


class RunNamed(_Record, tag=14, kw_only=True, frozen=True):
    """The number of this start, and the session that peers know; the group is empty."""

    run: int
    session: int


class OldCopyFound(_Record, tag=15, kw_only=True, frozen=True):
    """A peer remembers a later run or round than this folder holds; the group is empty.

    The term is the peer's term in the catalog's group. Peer 0 means that the consequences have been
    dealt with.
    """

    peer: NodeId
    run: int = 0
    round: int = 0
    term: Term = NO_TERM


class CopyKept(_Record, tag=16, kw_only=True, frozen=True):
    """The log continues from an old copy: records acknowledged from this offset on may be gone."""

    offset: Offset


class MemoryDoubted(_Record, tag=17, kw_only=True, frozen=True):
    """Unknown groups may have been here before; the group is empty.

    The term is the one in which such a group starts here; 0 ends the doubt.
    """

    term: Term


JournalRecord: TypeAlias = (
    LogStarted
    | StateSaved
    | TermMarked
    | VotersMarked
    | MarksCut
    | SyncedTo
    | RecoverySet
    | HolesAllowed
    | GroupForgotten
    | LossAllowed
    | RunBegan
    | RunEnded
    | PeerHeard
    | RunNamed
    | OldCopyFound
    | CopyKept
    | MemoryDoubted
)


class GroupState:
    """The journal's state of one group."""

    def __init__(self, start: LogStart) -> None:
        self.marks = Marks(start)
        self.hard_state = HardState(term=NO_TERM, vote=None)
        self.synced: SyncedPoint | None = None
        self.is_recovering = False
        self.is_reset = False
        self.has_holes = False
        self.may_lose = False
        self.copied_at: Offset | None = None
        """Where the log continued from an old copy of the folder, if it did."""

    def apply(self, record: JournalRecord) -> None:
        """Apply one of this group's records, in the order they were written."""
        match record:
            case LogStarted():
                self._apply_start(record)
            case StateSaved():
                assert record.term >= self.hard_state.term, "terms never go back"
                self.hard_state = HardState(term=record.term, vote=record.vote)
            case TermMarked():
                self.marks.append(record.index, record.term, TermOpened())
            case VotersMarked():
                self.marks.append(record.index, record.term, _voters(record))
            case MarksCut():
                self.marks.cut(record.index)
            case SyncedTo():
                self.synced = SyncedPoint(
                    segment_base=record.segment_base,
                    position=record.position,
                    end_offset=record.end_offset,
                    checksum=record.checksum,
                )
            case RecoverySet():
                self.is_recovering = record.is_recovering
            case HolesAllowed():
                self.has_holes = True
            case LossAllowed():
                self.may_lose = record.is_allowed
            case CopyKept():
                self.copied_at = record.offset
            case _:
                raise AssertionError("this is not about the state of a group")

    def snapshot(self, group: GroupId) -> list[JournalRecord]:
        """Return the records that rebuild this state from an empty one."""
        start = self.marks.start
        records: list[JournalRecord] = [start_record(group, start, is_reset=self.is_reset)]
        records.append(
            StateSaved(group=group, term=self.hard_state.term, vote=self.hard_state.vote)
        )
        records += [mark_record(group, m.index, m.term, m.payload) for m in self.marks.all()]
        if self.synced is not None:
            records.append(synced_record(group, self.synced))
        if self.is_recovering:
            records.append(RecoverySet(group=group, is_recovering=True))
        if self.has_holes:
            records.append(HolesAllowed(group=group))
        if self.may_lose:
            records.append(LossAllowed(group=group, is_allowed=True))
        if self.copied_at is not None:
            records.append(CopyKept(group=group, offset=self.copied_at))
        return records

    def _apply_start(self, record: LogStarted) -> None:
        start = start_of(record)
        self.marks = Marks(start) if record.is_reset else self.marks.trimmed(start)
        self.is_reset = record.is_reset
        if record.is_reset:
            self.synced = self.copied_at = None
            self.has_holes = False


def start_of(record: LogStarted) -> LogStart:
    """Return the log start in a record."""
    return LogStart(
        offset=record.offset,
        marks_before=record.marks_before,
        prev_term=record.prev_term,
        voters=_voters(record),
        visible_offset=record.visible_offset,
    )


def start_record(group: GroupId, start: LogStart, *, is_reset: bool) -> LogStarted:
    """Return the record for a log's start."""
    return LogStarted(
        group=group,
        offset=start.offset,
        marks_before=start.marks_before,
        prev_term=start.prev_term,
        voters=list(start.voters.voters),
        learners=list(start.voters.learners),
        visible_offset=start.visible_offset,
        is_reset=is_reset,
        move=start.voters.move,
    )


def mark_record(
    group: GroupId, index: Index, term: Term, payload: TermOpened | Voters
) -> JournalRecord:
    """Return the record that adds a mark."""
    match payload:
        case TermOpened():
            return TermMarked(group=group, index=index, term=term)
        case Voters():
            return VotersMarked(
                group=group,
                index=index,
                term=term,
                voters=list(payload.voters),
                learners=list(payload.learners),
                move=payload.move,
            )


def synced_record(group: GroupId, point: SyncedPoint) -> SyncedTo:
    """Return the record of a synced point."""
    return SyncedTo(
        group=group,
        segment_base=point.segment_base,
        position=point.position,
        end_offset=point.end_offset,
        checksum=point.checksum,
    )


def _voters(record: LogStarted | VotersMarked) -> Voters:
    return Voters(voters=tuple(record.voters), learners=tuple(record.learners), move=record.move)
