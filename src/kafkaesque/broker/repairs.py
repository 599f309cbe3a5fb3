"""Mends the damaged logs of one broker from what other voters hold: one log, one piece at a time.

A replica that has noted damage (`broker/damage_notes.py`) keeps its log and its vote, and does not
lead. Its damaged segment is written anew, from the leader or another voter that is whole there, and
swapped in (`log/mending.py`); then the note goes, durably, and when none is left it may lead again.
Only what is committed is mended, and only closed segments that no synced point lies in: a segment
that is still appended to is closed for it.

What is compacted is another matter. Two copies of such a log have lost different records, each in a
way that is right for itself. A value from one and the rest from another could bring back what a
later record deleted, which one copy has let go of. So all closed segments of a log with holes are
taken from one peer, and the note stays until all are there.
"""

import logging
from collections.abc import Callable, Generator, Iterator

from kafkaesque.broker.housekeeper import Housekeeper
from kafkaesque.broker.peers import Peers
from kafkaesque.broker.ranges import RangeAsked, RangePiece, RangeRefused, Told
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.replica_set import ReplicaSet
from kafkaesque.clock import Clock
from kafkaesque.config import HousekeepingConfig
from kafkaesque.errors import LogError, RepairFailed
from kafkaesque.log.mending import Gap, Mending, find_gap
from kafkaesque.log.steps import Step
from kafkaesque.machines.catalog_commands import Refused
from kafkaesque.types import GroupId, NodeId, Offset, Term

log = logging.getLogger(__name__)

Work = Generator[Step, None, None]


class _Refusal(RepairFailed):
    """This peer cannot help; another may."""


class NotYet(LogError):
    """It cannot be done now, and will soon; nothing failed."""


class Repairs:
    """The repairs of one broker. `tick` goes on with the one under way, or looks for the next."""

    def __init__(
        self,
        node: NodeId,
        replicas: ReplicaSet,
        housekeeper: Housekeeper,
        peers: Peers,
        clock: Clock,
        config: HousekeepingConfig,
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
        self._next_look_ms = 0
        self._not_before_ms: dict[GroupId, int] = {}
        self._told: dict[GroupId, str] = {}
        """Why the last try failed, so that the same is not said again and again."""
        self._mended: Replica | None = None
        self._work: Work | None = None

    def tick(self) -> None:
        """Work for a little while."""
        if self._work is None:
            self._look()
        if self._work is not None:
            self._go_on(self._work)

    def stop(self) -> None:
        """Give up what is under way."""
        if self._work is not None:
            self._work.close()
            self._work = None

    def _look(self) -> None:
        """Find a log to mend, now and then."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_look_ms:
            return
        self._next_look_ms = now_ms + self._config.repair_look_ms
        if self._not_before_ms:
            self._forget_gone()
        for group, replica in self._replicas.by_group.items():
            if replica.raft.may_lead:
                continue
            if not replica.damage.found:  # the log now begins behind it
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
        except NotYet:  # others need not wait for it
            self._work = None
            wait_ms = self._config.repair_look_ms
            self._not_before_ms[replica.group] = self._clock.monotonic_ms() + wait_ms
            self._next_look_ms = 0
        except LogError as error:
            self._work = None
            self._note_failure(replica.group, error)

    def _forget_gone(self) -> None:
        """Keep nothing in mind of groups that are not here any more."""
        here = self._replicas.by_group
        self._not_before_ms = {g: at for g, at in self._not_before_ms.items() if g in here}
        self._told = {group: reason for group, reason in self._told.items() if group in here}

    def _note_failure(self, group: GroupId, error: LogError) -> None:
        self.failed += 1
        self._not_before_ms[group] = self._clock.monotonic_ms() + self._config.repair_retry_ms
        if self._told.get(group) != str(error):
            self._told[group] = str(error)
            log.warning("repair_failed partition=%s reason=%s", group, error)

    # ── one log ──────────────────────────────────────────────────────────────────────────────

    def _mend(self, replica: Replica) -> Work:
        place = replica.damage.found[0].offset
        if place >= replica.log.end_offset:  # it was never committed, and was cut
            replica.damage.clear(place, place + 1)
            return
        below = mendable_below(replica, place)
        reasons: list[str] = []
        for peer in self._sources(replica):
            attempt = _Attempt(replica, peer, self._ask)
            self.begun += 1
            log.info("repair_begun partition=%s offset=%d from=%d", replica.group, place, peer)
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
            log.info(
                "repair_done partition=%s first=%d end=%d bytes=%d from=%d",
                *(replica.group, first, end, attempt.size, peer),
            )
            return
        raise RepairFailed("; ".join(reasons) or "no other voter can be reached")

    def _sources(self, replica: Replica) -> list[NodeId]:
        """Return who may have what is missing: the leader first, for it is surely up to date."""
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
        self._peers.ask_range(peer, asked, told.append)
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
    """One log that is mended from one peer."""

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
        """Write the segment of an offset anew; returns which offsets are whole now."""
        log = self._replica.log
        gap = yield from find_gap(log.segments, offset, log.start.offset)
        yield from self._fill(gap)
        return gap.base, gap.end

    def mend_all(self, below: Offset) -> Generator[Step, None, tuple[Offset, Offset]]:
        """Write all closed segments below an offset anew; returns which offsets are whole now."""
        log = self._replica.log
        self._want_holes()
        log.segments.compacted_to = log.segments.first_base  # it is another log's state soon
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
            while not mending.is_complete:  # ends: each piece moves on
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
        """See that pieces go together: either no log has holes, or all come from one state."""
        if not piece.has_holes and not self._replica.has_holes:
            return
        self._want_holes()
        if self._compacted_to is None:
            self._compacted_to = piece.compacted_to
        elif self._compacted_to != piece.compacted_to:
            raise NotYet(f"broker {self._peer} compacted its log meanwhile")

    def _want_holes(self) -> None:
        """Raise NotYet unless the journal says durably that this log may have holes."""
        if not self._replica.log.has_noted_holes:
            self._replica.log.allow_holes()
            raise NotYet("that the log has holes is yet to be noted")

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
        raise NotYet("the damaged segment is yet to be closed, committed and synced")
    return below
