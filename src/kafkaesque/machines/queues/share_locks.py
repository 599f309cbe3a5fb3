"""Who holds which offsets, how many times they were delivered, and until when.

A *lock* is what one member took at one time from one chunk: neighbouring offsets with equal
delivery counts. What is settled leaves it, so it may have holes, and another member's lock may
begin in such a hole. Locks are soft: no record mentions them, and a new leader knows none.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from kafkaesque.machines.queues.offset_bits import (
    BIT_MASK,
    CHUNK_SHIFT,
    Bits,
    between,
    first_bit,
    runs,
)
from kafkaesque.machines.queues.queue_errors import InvalidRecordState
from kafkaesque.types import Offset


class Lock:
    """What is left of one delivery in one chunk."""

    __slots__ = ("chunk", "count", "due_ms", "left", "member", "taken_ms")

    def __init__(self, member: str, chunk: int, left: Bits, count: int, taken_ms: int) -> None:
        self.member = member
        self.chunk = chunk
        self.left = left
        """The offsets that are still held."""
        self.count = count
        """The delivery that this is, from 1."""
        self.taken_ms = taken_ms
        self.due_ms = taken_ms


class _Chunk:
    """The locks of one chunk, found by offset.

    `heads` is a mask of bits at which a lock begins or goes on; `by_head` has the lock of each. A
    bit that is held belongs to the lock of the highest head at or below it.
    """

    __slots__ = ("by_head", "heads", "held", "recent")

    def __init__(self) -> None:
        self.held: Bits = 0
        self.heads: Bits = 0
        self.by_head: dict[int, Lock] = {}
        self.recent: Lock | None = None
        """The lock that was added or found last: mostly the next one as well."""

    def at(self, bit: int) -> Lock:
        """Return the lock that a held bit belongs to."""
        lock = self.by_head.get(bit)
        if lock is not None:
            return lock
        return self.by_head[(self.heads & ((1 << bit) - 1)).bit_length() - 1]

    def parts(self, bits: Bits) -> Sequence[tuple[Lock, Bits]]:
        """Return the locks that held bits belong to, each with its part of them."""
        lock = self.recent
        if lock is not None and bits & lock.left == bits:
            return ((lock, bits),)
        found = []
        while bits:
            lock = self.at(first_bit(bits))
            part = bits & lock.left
            assert part, "what is held belongs to the lock that is found for it"
            found.append((lock, part))
            bits ^= part
        self.recent = lock
        return found

    def put(self, lock: Lock, first: int, last: int) -> None:
        """Let bits that nobody holds belong to a lock."""
        after = last + 1
        if self.heads & ((1 << after) - 1) and (around := self.at(after)).left >> after:
            # An earlier lock has a hole here and goes on behind it.
            self.by_head[after] = around
            self.heads |= 1 << after
        if inner := self.heads & between(first, last):
            self.heads ^= inner
            while inner:
                head = first_bit(inner)
                del self.by_head[head]
                inner ^= 1 << head
        self.by_head[first] = self.recent = lock
        self.heads |= 1 << first
        self.held |= between(first, last)


class ShareLocks:
    """All locks on one partition."""

    def __init__(self) -> None:
        self.held = 0
        """How many offsets are held."""
        self._chunks: dict[int, _Chunk] = {}
        self._by_member: dict[str, dict[Lock, None]] = {}
        self._by_due: OrderedDict[Lock, None] = OrderedDict()
        """In the order in which they run out: they all have the same time."""
        self._due_ms_last = 0

    def add(self, lock: Lock, first: int, last: int, due_ms: int) -> None:
        """Add a lock on neighbouring bits that nobody holds.

        It runs out no earlier than the locks before it: that matters only after the lock time
        was shortened, and keeps them in order.
        """
        chunk = self._chunks.get(lock.chunk)
        if chunk is None:
            chunk = self._chunks[lock.chunk] = _Chunk()
        chunk.put(lock, first, last)
        self.held += last - first + 1
        members = self._by_member.get(lock.member)
        if members is None:
            members = self._by_member[lock.member] = {}
        members[lock] = None
        self._schedule(lock, due_ms)

    def _schedule(self, lock: Lock, due_ms: int) -> None:
        lock.due_ms = self._due_ms_last = max(due_ms, self._due_ms_last)
        self._by_due[lock] = None
        self._by_due.move_to_end(lock)

    def find(self, member: str, chunk: int, bits: Bits, now_ms: int) -> Sequence[tuple[Lock, Bits]]:
        """Return a member's locks on these offsets, each with its part of them.

        Raises InvalidRecordState if any of them is free, done, or another member's.
        """
        of_chunk = self._chunks.get(chunk)
        held = 0 if of_chunk is None else of_chunk.held
        if of_chunk is None or bits & held != bits:
            raise _not_held(member, chunk, bits & ~held)
        parts = of_chunk.parts(bits)
        for lock, part in parts:
            if lock.member != member or lock.due_ms <= now_ms:
                raise _not_held(member, chunk, part)
        return parts

    def remove(self, lock: Lock, bits: Bits) -> None:
        """Take offsets that a lock holds out of it."""
        chunk = self._chunks[lock.chunk]
        chunk.held ^= bits
        if not chunk.held:
            del self._chunks[lock.chunk]
        self.held -= bits.bit_count()
        lock.left ^= bits
        if not lock.left:
            del self._by_due[lock]
            members = self._by_member[lock.member]
            del members[lock]
            if not members:
                del self._by_member[lock.member]

    def renew(self, lock: Lock, bits: Bits, due_ms: int) -> None:
        """Let offsets of a lock run out later; what is not among them does not."""
        if bits == lock.left:
            self._schedule(lock, due_ms)
            return
        self.remove(lock, bits)
        for first, last in runs(bits):
            part = between(first, last)
            self.add(
                Lock(lock.member, lock.chunk, part, lock.count, lock.taken_ms), first, last, due_ms
            )

    def remove_below(self, offset: Offset) -> None:
        """Drop what is held below an offset."""
        edge, low = offset >> CHUNK_SHIFT, offset & BIT_MASK
        for number in [number for number in self._chunks if number <= edge]:
            chunk = self._chunks[number]
            gone = chunk.held if number < edge else chunk.held & ((1 << low) - 1)
            for lock, part in chunk.parts(gone):
                self.remove(lock, part)

    def get(self, chunk: int) -> Bits:
        """Return the mask of what is held in a chunk."""
        of_chunk = self._chunks.get(chunk)
        return 0 if of_chunk is None else of_chunk.held

    def first_due(self) -> Lock | None:
        """Return the lock that runs out first."""
        return next(iter(self._by_due), None)

    def of(self, member: str) -> list[Lock]:
        """Return all locks of a member."""
        return list(self._by_member.get(member, ()))

    def holders(self) -> dict[str, int]:
        """Return how many offsets each member holds."""
        return {
            member: sum(lock.left.bit_count() for lock in locks)
            for member, locks in self._by_member.items()
        }

    def __iter__(self) -> Iterator[Lock]:
        return iter(self._by_due)


def _not_held(member: str, chunk: int, bits: Bits) -> InvalidRecordState:
    offset = (chunk << CHUNK_SHIFT) + first_bit(bits)
    return InvalidRecordState(f"{member} does not hold offset {offset}")
