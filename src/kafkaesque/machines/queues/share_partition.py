"""The state of deliveries of one share group on one partition.

Every offset is in one of these states: *done* if it is below `start` or marked as done, *locked*
while a member holds it, *released* if it was handed out and is ready again, and *new* from `next`
on. The log says what is done and how many deliveries have ended; locks are soft.

Callers pass the time and promise that it does not go back. Nothing here reads records: which
offsets exist is what the caller has found in the log.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.offset_bits import (
    BIT_MASK,
    CHUNK_SHIFT,
    Bits,
    OffsetBits,
    between,
    first_bit,
    lowest,
    pieces,
)
from kafkaesque.machines.queues.queue_errors import InvalidAcknowledgement
from kafkaesque.machines.queues.settled_offsets import Reason, SettledOffsets
from kafkaesque.machines.queues.share_locks import Lock, ShareLocks
from kafkaesque.machines.queues.share_records import Place, StartSaved
from kafkaesque.machines.queues.share_saved import SavedState
from kafkaesque.machines.queues.share_tally import ShareTally
from kafkaesque.machines.queues.share_values import Ack, AckBatch, Acquired, ShareLimits, ShareView
from kafkaesque.types import Offset

ACCEPT, REJECT, RELEASE, RENEW = Ack.ACCEPT, Ack.REJECT, Ack.RELEASE, Ack.RENEW


class SharePartition:
    """One group's deliveries on one partition."""

    def __init__(
        self,
        place: Place,
        group: str,
        first: Offset,
        limits: ShareLimits,
        opened_ms: int,
        tally: ShareTally | None = None,
    ) -> None:
        self.place = place
        self.group = group
        self.limits = limits
        """May be replaced when settings change."""
        self.start = first
        """The first offset that is not done."""
        self.next = first
        """The first offset that was never handed out."""
        self.generation = 0
        """Changes whenever an administrator sets the start."""
        self.opened_ms = opened_ms
        """The wall time when the group first came to this partition."""
        self._settled = SettledOffsets()
        self._released = OffsetBits()
        self._locks = ShareLocks()
        self._saved = SavedState(place, group)
        self._tally = ShareTally() if tally is None else tally

    @classmethod
    def restored(
        cls,
        place: Place,
        group: str,
        records: Iterable[MachineRecord],
        limits: ShareLimits,
        tally: ShareTally | None = None,
    ) -> "SharePartition":
        """Return the state that records say; those of other groups and partitions are left out.

        What was locked is released, with the count that was written last.
        """
        saved = SavedState(place, group)
        settled = saved.restore(records)
        start = saved.start
        assert start is not None, "a group has a start wherever it has state"
        self = cls(place, group, start.start, limits, start.opened_ms, tally)
        self.generation = start.generation
        self._saved, self._settled = saved, settled
        self.next = max(self.start, settled.end())
        for chunk, bits in pieces(self.start, self.next - 1):
            self._released.add(chunk, bits & ~settled.done.get(chunk))
        self._advance()
        return self

    # ── handing out ──────────────────────────────────────────────────────────────────────────

    def next_available(self) -> Offset | None:
        """Return where to read the log for `take`; None while nothing may be handed out."""
        if self._locks.held >= self.limits.locks_max:
            return None
        released = self._released.first()
        if released is not None:
            return released
        return self.next if self._window_room() > 0 else None

    def take(
        self,
        member: str,
        spans: Iterable[tuple[Offset, Offset]],
        records_max: int,
        now_ms: int,
        *,
        read_from: Offset | None = None,
        read_to: Offset | None = None,
    ) -> list[Acquired]:
        """Let a member hold offsets of these spans, ascending; what lies between them is done.

        The log was read from `read_from`, by default `next_available()`: pass it if anything may
        have happened since, or what was released meanwhile would count as missing. With `read_to`,
        what is not there from the last span up to that offset is done as well.
        """
        at = self.next_available() if read_from is None else read_from
        taking = _Taking(
            member=member,
            room=min(records_max, self.limits.locks_max - self._locks.held),
            now_ms=now_ms,
        )
        if at is None:
            return taking.acquired
        for first, last in spans:
            if at < first:
                self._skip(at, first)
                at = first
            if at <= last:
                if self._released.chunks:
                    self._take_released(taking, at, last)
                self._take_new(taking, at, last)
                at = last + 1
        if read_to is not None and at < read_to:
            self._skip(at, read_to)
        return taking.acquired

    def _take_released(self, taking: "_Taking", first: Offset, last: Offset) -> None:
        for chunk, bits in pieces(max(first, self.start), min(last, self.next - 1)):
            free = lowest(bits & self._released.get(chunk), taking.room)
            for run in self._settled.counts.runs(chunk, free):
                run_last = run.last
                if run.deliveries + 1 >= self.limits.delivery_max:
                    if not taking.may_take_last_attempt():
                        return
                    run_last = run.first
                self._released.remove(chunk, between(run.first, run_last))
                self._lock(taking, chunk, run.first, run_last, run.deliveries + 1)
                if not taking.room:
                    return

    def _take_new(self, taking: "_Taking", first: Offset, last: Offset) -> None:
        if not first <= self.next <= last:
            return
        count = min(taking.room, last - self.next + 1, self._window_room())
        if count <= 0:
            return
        if self.limits.delivery_max <= 1:
            if not taking.may_take_last_attempt():
                return
            count = 1
        for chunk, bits in pieces(self.next, self.next + count - 1):
            self._lock(taking, chunk, first_bit(bits), bits.bit_length() - 1, 1)
        self.next += count

    def _lock(self, taking: "_Taking", chunk: int, first: int, last: int, count: int) -> None:
        lock = Lock(taking.member, chunk, between(first, last), count, taking.now_ms)
        self._locks.add(lock, first, last, taking.now_ms + self.limits.lock_ms)
        base = chunk << CHUNK_SHIFT
        taking.add(base + first, base + last, count)
        self._tally.delivered += last - first + 1
        if count > 1:
            self._tally.redelivered += last - first + 1

    def _skip(self, first: Offset, end: Offset) -> None:
        """Take offsets as done that do not exist, as far as the window reaches."""
        for chunk, bits in pieces(max(first, self.start), min(end, self.next) - 1):
            if missing := bits & self._released.get(chunk):
                self._released.remove(chunk, missing)
                self._settled.finish(chunk, missing)
        self._advance()
        if not first <= self.next < end:
            return
        if self.start == self.next:
            self.start = self.next = end  # however many are missing, there is nothing to note
            return
        reached = min(end, self.next + self._window_room())
        for chunk, bits in pieces(self.next, reached - 1):
            self._settled.finish(chunk, bits)
        self.next = reached

    def _window_room(self) -> int:
        return max(self.start + self.limits.window - self.next, 0)

    # ── settling ─────────────────────────────────────────────────────────────────────────────

    def settle(self, member: str, acks: Sequence[AckBatch], now_ms: int) -> None:
        """Do what a member says of offsets that it holds: all of it, or nothing if it is refused.

        What is below the start was done before, which is fine.
        """
        parts: list[tuple[Ack, Lock, Bits]] = []
        for first, last, kind in _ranges(acks, self.start, self.next):
            for chunk, bits in pieces(first, last):
                for lock, part in self._locks.find(member, chunk, bits, now_ms):
                    parts.append((kind, lock, part))
        for kind, lock, part in parts:
            if kind is RENEW:
                self._locks.renew(lock, part, now_ms + self.limits.lock_ms)
            elif kind is RELEASE:
                self._release(lock, part)
            else:
                self._locks.remove(lock, part)
                self._finish(lock.chunk, part, Reason.REJECTED if kind is REJECT else None)
                if kind is REJECT:
                    self._tally.rejected += part.bit_count()
                elif kind is ACCEPT:
                    self._tally.accepted += part.bit_count()
        self._advance()

    def drop(self, member: str, now_ms: int) -> None:
        """Release everything that a member holds, whether its locks have run out by now or not."""
        for lock in self._locks.of(member):
            self._release(lock, lock.left)
        self._advance()

    def expire(self, now_ms: int, offsets_max: int) -> int:
        """Release what was held for too long; returns how many offsets, at most this many."""
        expired = 0
        while expired < offsets_max:
            lock = self._locks.first_due()
            if lock is None or lock.due_ms > now_ms:
                break
            part = lowest(lock.left, offsets_max - expired)
            expired += part.bit_count()
            self._release(lock, part)
        self._advance()
        self._tally.expired += expired
        return expired

    @property
    def due_ms(self) -> int | None:
        """When the next lock runs out; None if there is none."""
        lock = self._locks.first_due()
        return None if lock is None else lock.due_ms

    def _release(self, lock: Lock, bits: Bits) -> None:
        """End a delivery; was it the last attempt, the offsets are done."""
        self._locks.remove(lock, bits)
        if lock.count >= self.limits.delivery_max:
            self._settled.finish(lock.chunk, bits, Reason.LIMIT)
            self._tally.given_up += bits.bit_count()
        else:
            self._released.add(lock.chunk, bits)
            self._settled.count(lock.chunk, bits, lock.count)

    def _finish(self, chunk: int, bits: Bits, reason: Reason | None) -> None:
        """Take what was held as done; mostly it is what the start waits for."""
        ready = bits >> (self.start & BIT_MASK) if chunk == self.start >> CHUNK_SHIFT else 0
        if ready and not ready & (ready + 1):
            self.start += ready.bit_length()
            self._settled.counts.clear(chunk, bits)
        else:
            self._settled.finish(chunk, bits, reason)

    def _advance(self) -> None:
        if self._settled.done.chunks:
            self.start = self._settled.done_until(self.start)

    # ── moving the start ─────────────────────────────────────────────────────────────────────

    def log_starts_at(self, offset: Offset) -> None:
        """Take everything below as done: the log no longer has it."""
        if offset <= self.start:
            return
        self._locks.remove_below(offset)
        self._released.remove_below(offset)
        self._settled.remove_below(offset)
        self.start = offset
        self.next = max(self.next, offset)
        self._advance()

    def set_start(self, offset: Offset, generation: int) -> None:
        """Begin again from an offset that an administrator chose; nothing else remains."""
        self.start = self.next = offset
        self.generation = generation
        self._settled = SettledOffsets()
        self._released = OffsetBits()
        self._locks = ShareLocks()
        self._saved.doubt()

    # ── records and views ────────────────────────────────────────────────────────────────────

    def changes(self) -> list[MachineRecord]:
        """Return what has changed since the last call: at most one record for each key."""
        start = StartSaved(self.generation, self.start, self.opened_ms)
        return self._saved.changes(start, self._settled)

    def view(self, now_ms: int) -> ShareView:
        """Return counts by state, and who holds what."""
        return ShareView(
            start=self.start,
            next=self.next,
            released=self.released,
            locked=self.locked,
            done=len(self._settled.done),
            held_ms_max=self.held_ms_max(now_ms),
            holders=self.holders(),
        )

    @property
    def released(self) -> int:
        """How many offsets are ready again."""
        return len(self._released)

    @property
    def locked(self) -> int:
        """How many offsets members hold."""
        return self._locks.held

    def held_ms_max(self, now_ms: int) -> int | None:
        """Return how long the oldest lock has been held; None if there is none."""
        return max((now_ms - lock.taken_ms for lock in self._locks), default=None)

    def lag(self, first: Offset, end: Offset) -> int:
        """Return how many offsets of a log from `first` to `end` are not done."""
        return max(end - max(self.start, first) - len(self._settled.done), 0)

    def holders(self) -> dict[str, int]:
        """Return how many offsets each member holds."""
        return self._locks.holders()


class _Taking:
    """One call of `take`: what it has handed out, and how much more it may."""

    __slots__ = ("acquired", "member", "now_ms", "room")

    def __init__(self, member: str, room: int, now_ms: int) -> None:
        self.member = member
        self.room = max(room, 0)
        self.now_ms = now_ms
        self.acquired: list[Acquired] = []

    def add(self, first: Offset, last: Offset, count: int) -> None:
        """Add a range; one that goes on with the last one is merged with it."""
        self.room -= last - first + 1
        before = self.acquired[-1] if self.acquired else None
        if before is not None and before.last + 1 == first and before.count == count:
            self.acquired[-1] = Acquired(before.first, last, count)
        else:
            self.acquired.append(Acquired(first, last, count))

    def may_take_last_attempt(self) -> bool:
        """Return whether a last attempt may be taken now, alone; nothing is taken after it.

        If such a record crashes its consumer, the attempts of other records do not count.
        """
        may = not self.acquired and self.room > 0
        self.room = 1 if may else 0
        return may


def _ranges(
    acks: Sequence[AckBatch], start: Offset, end: Offset
) -> Sequence[tuple[Offset, Offset, Ack]]:
    """Return the acknowledgements as ascending ranges of one kind each; neighbours are merged.

    What is below the start is left out: without that, no window would bound the ranges.
    """
    if len(acks) == 1:  # as most consumers do that settle records one by one
        first, last, kinds = acks[0]
        if len(kinds) == 1 and start <= first <= last < end:
            return ((first, last, kinds[0]),)
    out: list[tuple[Offset, Offset, Ack]] = []
    before: Offset = -1
    for first, last, kinds in acks:
        if not before < first <= last:
            raise InvalidAcknowledgement("acknowledgements must be ascending and disjoint")
        if last >= end:
            raise InvalidAcknowledgement(f"offset {last} was never handed out")
        if len(kinds) not in (1, last - first + 1):
            raise InvalidAcknowledgement("acknowledgements need one kind, or one for each offset")
        before = last
        if last < start:
            continue
        if first < start:
            if len(kinds) > 1:
                kinds = kinds[start - first :]
            first = start
        for kind, alike in groupby(kinds) if len(kinds) > 1 else ((kinds[0], None),):
            part_last = last if alike is None else first + sum(1 for _ in alike) - 1
            if out and out[-1][1] + 1 == first and out[-1][2] is kind:
                out[-1] = (out[-1][0], part_last, kind)
            else:
                out.append((first, part_last, kind))
            first = part_last + 1
    return out
