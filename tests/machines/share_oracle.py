"""A share group on one partition, written as simply as possible: one entry for each offset."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafkaesque.machines.queues.queue_errors import InvalidAcknowledgement, InvalidRecordState
from kafkaesque.machines.queues.share_values import Ack, AckBatch, Acquired, ShareLimits


@dataclass
class Held:
    member: str
    count: int
    due_ms: int
    turn: int


class Oracle:
    """Does what `SharePartition` does, offset by offset."""

    def __init__(self, first: int, limits: ShareLimits) -> None:
        self.limits = limits
        self.start = self.next = first
        self.done: dict[int, str] = {}
        """Why each offset from the start on is done."""
        self.held: dict[int, Held] = {}
        self.counts: dict[int, int] = {}
        self.due_ms_last = 0
        self.turn = 0

    @property
    def released(self) -> list[int]:
        known = range(self.start, self.next)
        return [n for n in known if n not in self.done and n not in self.held]

    def next_available(self) -> int | None:
        if len(self.held) >= self.limits.locks_max:
            return None
        if self.released:
            return self.released[0]
        return self.next if self.next - self.start < self.limits.window else None

    def take(
        self,
        member: str,
        spans: Sequence[tuple[int, int]],
        records_max: int,
        now_ms: int,
        read_from: int | None = None,
        read_to: int | None = None,
    ) -> list[Acquired]:
        at = self.next_available() if read_from is None else read_from
        if at is None:
            return []
        self.turn += 1
        taken: list[tuple[int, int]] = []
        ends = False
        end = max([last + 1 for _, last in spans] + [read_to or 0])
        for offset in range(at, end):
            exists = any(first <= offset <= last for first, last in spans)
            if offset > self.next:
                break
            if offset < self.start or offset in self.done or offset in self.held:
                continue
            is_new = offset == self.next
            if not exists:
                if is_new and self.start < self.next >= self.start + self.limits.window:
                    break
                self._finish(offset, "")
                self.next = max(self.next, offset + 1)
                self._advance()
                continue
            if ends or len(taken) >= records_max or len(self.held) >= self.limits.locks_max:
                ends = True
                if is_new:
                    break
                continue
            if is_new and self.next >= self.start + self.limits.window:
                break
            count = self.counts.get(offset, 0) + 1
            if count >= self.limits.delivery_max:
                ends = True
                if taken:
                    continue
            self.next = max(self.next, offset + 1)
            self._hold(offset, member, count, now_ms)
            taken.append((offset, count))
        return merged(taken)

    def _hold(self, offset: int, member: str, count: int, now_ms: int) -> None:
        self.due_ms_last = max(self.due_ms_last, now_ms + self.limits.lock_ms)
        self.held[offset] = Held(member, count, self.due_ms_last, self.turn)

    def settle(self, member: str, acks: Iterable[AckBatch], now_ms: int) -> None:
        before, flat = -1, []
        for first, last, kinds in acks:
            if not before < first <= last or last >= self.next:
                raise InvalidAcknowledgement
            if len(kinds) not in (1, last - first + 1):
                raise InvalidAcknowledgement
            before = last
            flat += [
                (n, kinds[0 if len(kinds) == 1 else n - first]) for n in range(first, last + 1)
            ]
        flat = [(offset, kind) for offset, kind in flat if offset >= self.start]
        for offset, _ in flat:
            held = self.held.get(offset)
            if held is None or held.member != member or held.due_ms <= now_ms:
                raise InvalidRecordState
        self.turn += 1
        for offset, kind in flat:
            if kind is Ack.RELEASE:
                self._release(offset)
            elif kind is Ack.RENEW:
                self._hold(offset, member, self.held[offset].count, now_ms)
            else:
                del self.held[offset]
                self._finish(offset, "rejected" if kind is Ack.REJECT else "")
        self._advance()

    def _release(self, offset: int) -> None:
        count = self.held.pop(offset).count
        if count >= self.limits.delivery_max:
            self._finish(offset, "limit")
        else:
            self.counts[offset] = count

    def _finish(self, offset: int, reason: str) -> None:
        self.done[offset] = reason
        self.counts.pop(offset, None)

    def _advance(self) -> None:
        while self.start in self.done:
            del self.done[self.start]
            self.start += 1

    def drop(self, member: str) -> None:
        for offset in [offset for offset, held in self.held.items() if held.member == member]:
            self._release(offset)
        self._advance()

    def expire(self, now_ms: int, offsets_max: int) -> int:
        late = [
            (held.due_ms, held.turn, n) for n, held in self.held.items() if held.due_ms <= now_ms
        ]
        late = sorted(late)[:offsets_max]
        for _, _, offset in late:
            self._release(offset)
        self._advance()
        return len(late)

    def log_starts_at(self, offset: int) -> None:
        self.start = max(self.start, offset)
        self.next = max(self.next, self.start)
        self.done = {n: why for n, why in self.done.items() if n >= self.start}
        self.held = {n: held for n, held in self.held.items() if n >= self.start}
        self.counts = {n: count for n, count in self.counts.items() if n >= self.start}
        self._advance()

    def set_start(self, offset: int) -> None:
        self.__init__(offset, self.limits)  # type: ignore[misc]

    def crash(self) -> None:
        """Lose what is soft: what was handed out above everything durable was never handed out."""
        self.held = {}
        self.due_ms_last = 0
        self.next = max([self.start, *(n + 1 for n in (*self.done, *self.counts))])


def merged(taken: Iterable[tuple[int, int]]) -> list[Acquired]:
    out: list[Acquired] = []
    for offset, count in taken:
        if out and out[-1].last + 1 == offset and out[-1].count == count:
            out[-1] = Acquired(out[-1].first, offset, count)
        else:
            out.append(Acquired(offset, offset, count))
    return out
