"""Mends one broker's damaged logs from other voters' copies: one log, one piece at a time.

A replica that has noted damage (`broker/replication/damage_notes.py`) keeps its log and its vote,
but does not lead. Its damaged segment is fetched from the leader or another voter that is whole
there, and swapped in (`log/segment_repair.py`). Then the note is cleared durably; when no note is
left the replica may lead again. Only committed records are mended, and only closed segments without
a synced point inside: an active segment is closed for it.

Compacted logs differ. Two copies of such a log have lost different records, each in a valid way. A
value from one and the rest from another could bring back what a later record deleted, if one copy
has dropped that record. So all closed segments of a log with holes are fetched from one peer, and
the note stays until all are there.
"""

from collections.abc import Callable, Generator, Iterator

from kafkaesque import events as happened
from kafkaesque.broker.cluster.calls import RANGE
from kafkaesque.broker.cluster.housekeeper import Housekeeper
from kafkaesque.broker.cluster.peers import Peers
from kafkaesque.broker.cluster.replica_set import ReplicaSet
from kafkaesque.broker.replication.repair_ranges import RangeAsked, RangePiece, RangeRefused, Told
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.config import HousekeepingConfig
from kafkaesque.errors import LogError
from kafkaesque.log.errors import RepairFailed
from kafkaesque.log.segment_repair import Gap, Mending, find_gap
from kafkaesque.log.steps import Step
from kafkaesque.machines.catalog.catalog_commands import Refused
from kafkaesque.types import GroupId, NodeId, Offset, Term

Work = Generator[Step, None, None]


class _Refusal(RepairFailed):
    """This peer cannot help; another may."""


class NotYet(LogError):
    """It cannot be done yet, but soon; nothing failed."""


class Repairs:
    """One broker's repairs. `tick` continues the current one, or looks for the next."""

    def __init__(
        self,
        node: NodeId,
        replicas: ReplicaSet,
        housekeeper: Housekeeper,
        peers: Peers,
        clock: Clock,
        config: HousekeepingConfig,
        events: happened.Events,
    ) -> None:
        self.begun = 0
        self.done = 0
        self.failed = 0
        self._node = node
        self._replicas = replicas
        self._housekeeper = housekeeper
        self._peers = peers
        self._clock = clock
        self._config = config
        self._events = events
        self._next_look_ms = 0
        self._not_before_ms: dict[GroupId, int] = {}
        self._told: dict[GroupId, str] = {}
        """Why the last try failed, so that the same reason is not reported again."""
        self._mended: Replica | None = None
        self._work: Work | None = None

    def tick(self) -> None:
        """Work for a short time."""
        if self._work is None:
            self._look()
        if self._work is not None:
            self._go_on(self._work)

    def stop(self) -> None:
        """Give up the current repair."""
        if self._work is not None:
            self._work.close()
            self._work = None

    def _look(self) -> None:
        """Look for a log to mend, if that is due."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_look_ms:
            return
        self._next_look_ms = now_ms + self._config.repair_look_ms
        if self._not_before_ms:
            self._forget_gone()
        for group, replica in self._replicas.by_group.items():
            if replica.raft.may_lead:
                continue
            if not replica.damage.found:  # the log now starts behind it
                replica.mended()
            elif _can_be_mended(replica) and now_ms >= self._not_before_ms.get(group, 0):
                self._mended, self._work = replica, self._mend(replica)
                return

    def _go_on(self, work: Work) -> None:
        replica = self._mended
        assert replica is not None
        until_ms = self._clock.monotonic_ms() + self._config.slice_ms
        try:
            for _ in range(self._config.steps_max):
                if replica.error is not None or replica.log.is_closed:
                    work.close()
                    self._work = None
                    return
                if next(work) is Step.WAITED or self._clock.monotonic_ms() >= until_ms:
                    return
        except StopIteration:
            self._work = None
            self._told.pop(replica.group, None)
            self._next_look_ms = 0  # there may be more
        except NotYet:  # other logs need not wait for it
            self._work = None
            wait_ms = self._config.repair_look_ms
            self._not_before_ms[replica.group] = self._clock.monotonic_ms() + wait_ms
            self._next_look_ms = 0
        except LogError as error:
            self._work = None
            self._note_failure(replica.group, error)

    def _forget_gone(self) -> None:
        """Drop the notes about groups that are no longer here."""
        here = self._replicas.by_group
        self._not_before_ms = {g: at for g, at in self._not_before_ms.items() if g in here}
        self._told = {group: reason for group, reason in self._told.items() if group in here}

    def _note_failure(self, group: GroupId, error: LogError) -> None:
        self.failed += 1
        self._not_before_ms[group] = self._clock.monotonic_ms() + self._config.repair_retry_ms
        if self._told.get(group) != str(error):
            self._told[group] = str(error)
            self._events.tell(happened.RepairFailed(partition=group, reason=str(error)))

    # ── one log ──────────────────────────────────────────────────────────────────────────────

    def _mend(self, replica: Replica) -> Work:
        place = replica.damage.found[0].offset
        if place >= replica.log.end_offset:  # it was uncommitted, and was cut
            replica.damage.clear(place, place + 1)
            return
        below = mendable_below(replica, place)
        reasons: list[str] = []
        for peer in self._sources(replica):
            attempt = _Attempt(replica, peer, self._ask)
            self.begun += 1
            begun = happened.RepairBegun(partition=replica.group, offset=place, source=peer)
            self._events.tell(begun)
            try:
                if replica.has_holes:
                    first, end = yield from attempt.mend_all(below)
                else:
                    first, end = yield from attempt.mend_at(place)
            except RepairFailed as error:
                reasons.append(f"broker {peer}: {error}")
                continue
            replica.damage.clear(first, end)
            replica.mended()
            self._housekeeper.errors.pop(replica.group, None)
            self.done += 1
            done = happened.RepairDone(
                partition=replica.group, first=first, end=end, bytes=attempt.size, source=peer
            )
            self._events.tell(done)
            return
        raise RepairFailed("; ".join(reasons) or "no other voter is reachable")

    def _sources(self, replica: Replica) -> list[NodeId]:
        """Return voters that may have the lost records: the leader first, as it is current."""
        leader = replica.raft.leader
        nodes = sorted(replica.raft.voters.voters, key=lambda node: node != leader)
        reachable = self._replicas.is_reachable
        return [node for node in nodes if node != self._node and reachable(node)]

    def _ask(
        self, peer: NodeId, group: GroupId, first: Offset, end: Offset
    ) -> Generator[Step, None, RangePiece]:
        """Ask for one piece, and wait for it in steps."""
        told: list[Told] = []
        asked = RangeAsked(
            source=self._node,
            group=group,
            first=first,
            end=end,
            bytes_max=self._config.repair_piece_bytes_max,
        )
        self._peers.ask(peer, RANGE, asked, told.append)
        while not told:
            yield Step.WAITED
        match told[0]:
            case RangePiece() as piece:
                return piece
            case RangeRefused(reason=reason) | Refused(text=reason):
                raise _Refusal(reason)
            case _:
                raise _Refusal("it did not answer")


class _Attempt:
    """The repair of one log from one peer."""

    def __init__(
        self,
        replica: Replica,
        peer: NodeId,
        ask: Callable[[NodeId, GroupId, Offset, Offset], Generator[Step, None, RangePiece]],
    ) -> None:
        self.size = 0
        self._replica = replica
        self._peer = peer
        self._ask = ask
        self._compacted_to: Offset | None = None

    def mend_at(self, offset: Offset) -> Generator[Step, None, tuple[Offset, Offset]]:
        """Rewrite the segment of `offset`; return the range of offsets that is whole now."""
        log = self._replica.log
        gap = yield from find_gap(log.segments, offset, log.start.offset)
        yield from self._fill(gap)
        return gap.base, gap.end

    def mend_all(self, below: Offset) -> Generator[Step, None, tuple[Offset, Offset]]:
        """Rewrite all closed segments below an offset; return the range that is whole now."""
        log = self._replica.log
        self._want_holes()
        log.segments.compacted_to = log.segments.first_base  # soon the peer's compaction state
        first = offset = log.start.offset
        while offset < below:
            segment, end = log.segments.span(offset)
            if end > below:
                break
            start = max(segment.base, log.start.offset)
            yield from self._fill(Gap(base=segment.base, first=start, end=end, segment=segment))
            offset = max(end, log.start.offset)
        return first, offset

    def _fill(self, gap: Gap) -> Iterator[Step]:
        replica = self._replica
        mending = Mending(replica.log.segments, gap, has_holes=replica.has_holes)
        try:
            mending.begin()
            while not mending.is_complete:  # terminates: each piece advances
                first = mending.expected
                piece = yield from self._ask(self._peer, replica.group, first, gap.end)
                self._check(piece)
                mending.add(memoryview(piece.data), piece.end, self._term_at)
                if mending.expected <= first:
                    raise _Refusal("it sent nothing")
                yield Step.WORKED
            yield from mending.finish()
        finally:
            mending.close()
        self.size += mending.size

    def _check(self, piece: RangePiece) -> None:
        """Check that pieces fit: either no log has holes, or all come from one compaction state."""
        if not piece.has_holes and not self._replica.has_holes:
            return
        self._want_holes()
        if self._compacted_to is None:
            self._compacted_to = piece.compacted_to
        elif self._compacted_to != piece.compacted_to:
            raise NotYet(f"broker {self._peer} compacted its log meanwhile")

    def _want_holes(self) -> None:
        """Raise NotYet unless the journal durably says that this log may have holes."""
        if not self._replica.log.has_noted_holes:
            self._replica.log.allow_holes()
            raise NotYet("the holes of the log are not yet noted")

    def _term_at(self, offset: Offset) -> Term:
        log = self._replica.log
        return log.term_at(log.index_at(offset))


def _can_be_mended(replica: Replica) -> bool:
    is_itself = replica.error is None and not replica.raft.is_recovering
    return is_itself and not replica.is_alone


def _settled_below(replica: Replica) -> Offset:
    return min(replica.settled_offset, replica.log.mendable_below)


def mendable_below(replica: Replica, place: Offset) -> Offset:
    """Return up to where segments may be replaced; raises NotYet if `place` lies beyond."""
    log = replica.log
    segment, end = log.segments.span(place)
    if not segment.is_closed:
        log.roll()
    below = _settled_below(replica)
    if not segment.is_closed or end > below:
        log.note_point()
        raise NotYet("the damaged segment is not yet closed, committed and synced")
    return below
