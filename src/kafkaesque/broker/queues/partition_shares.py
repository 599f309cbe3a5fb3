"""The share groups of one partition, while this broker leads it in one term.

    ADOPTING ──the state so far is here──▶ SERVING ──leadership lost, or taken by another──▶ CLOSED

A new leader first adopts the partition's state: from then on the state's coordinator refuses what
leaders of earlier terms still want to write. What groups do is decided here in memory and then
written, one write at a time; what happens meanwhile goes with the next one. An acknowledgement is
answered when its write is committed. A write without a known outcome is repeated until there is
one: the records are the newest of their keys, so that changes nothing. It may still be on its way,
and must not take effect after newer ones: so the leader first adopts the state again.

An administrator may set a group's start, or delete the group, while it has no members. So the state
is looked at again when a member comes, and when a write is refused for that reason.
"""

from collections.abc import Callable, Sequence, Set
from enum import Enum
from functools import partial
from typing import NamedTuple

from kafkaesque.broker.partition.partition import EMPTY, Partition
from kafkaesque.broker.queues.share_calls import ShareDesk
from kafkaesque.broker.queues.share_settings import ShareSettingsInForce
from kafkaesque.broker.queues.share_spans import Batches
from kafkaesque.clock import Clock
from kafkaesque.errors import KafkaesqueError, NotCoordinator, NotLeader, OutcomeUnknown
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.queue_errors import (
    FencedGeneration,
    FencedTerm,
    InvalidRecordState,
    ShareStateFull,
)
from kafkaesque.machines.queues.share_commands import (
    Adopt,
    Adopted,
    AdoptedBefore,
    WriteState,
    Written,
)
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_records import Place, groups_of
from kafkaesque.machines.queues.share_tally import ShareTally
from kafkaesque.machines.queues.share_values import AckBatch, Acquired

RETRY_MS = 200
"""How soon a question without an answer is asked again: an election takes about a second."""

EXPIRED_MAX = 10_000
"""Locks that expire in one tick; the others follow with the next one."""

READS_MAX = 16
"""Reads for one request that find only markers and aborted records."""

READ_BYTES_MIN = 64 << 10
"""As cheap to read as less."""

RECORD_BYTES = 1 << 10
"""What a record is thought to have before one was read."""

ACKS_WAITING_MAX = 10_000
"""Acknowledgements that wait for the state's coordinator, which may be away for long."""

REFUSALS = (FencedTerm, FencedGeneration, ShareStateFull)
"""What the state's coordinator says to a write that it refuses."""

Done = Callable[[KafkaesqueError | None], None]
Records = dict[bytes, MachineRecord]


class Stage(Enum):
    """How far it is."""

    ADOPTING = "adopting"
    SERVING = "serving"
    CLOSED = "closed"


class _Waiting(NamedTuple):
    """An acknowledgement that is not durable yet."""

    group: str
    done: Done
    since_ms: int


class Taken(NamedTuple):
    """Whole batches, and which of their records were handed out."""

    data: memoryview
    acquired: Sequence[Acquired]


NOTHING = Taken(EMPTY, ())


class PartitionShares:
    """Every group that shares one partition."""

    def __init__(
        self,
        place: Place,
        partition: Partition,
        desk: ShareDesk,
        clock: Clock,
        settings: ShareSettingsInForce,
        tally: ShareTally,
    ) -> None:
        self.place = place
        self.partition = partition
        self.term = partition.term
        self.stage = Stage.ADOPTING
        self._desk = desk
        self._clock = clock
        self._settings = settings
        self._tally = tally
        self._groups: dict[str, SharePartition] = {}
        self._opening: dict[str, SharePartition] = {}
        """Groups whose start is being written: nothing is handed out before."""
        self._changed: dict[str, None] = {}
        """Groups with changes that are not in a write yet."""
        self._unwritten: dict[str, Records] = {}
        """By group, the newest records of keys that are not known to be written."""
        self._refused: dict[str, KafkaesqueError] = {}
        """Groups that could not be opened, until the next tick."""
        self._next_done: list[_Waiting] = []
        """To be called when the next write is committed."""
        self._done: list[_Waiting] = []
        """To be called when the current write is committed."""
        self._is_asking = False
        self._is_adopted = False
        """Whether the next question is a write."""
        self._must_look = False
        """Whether the state may have changed without this leader."""
        self._serial = desk.next_serial()
        self._since = self.term - 1
        """A term before this one; which, the state's coordinator may say."""
        self._record_bytes = RECORD_BYTES
        """The average size of the records that were read last."""
        self._ask_again_ms = 0
        self.trouble: KafkaesqueError | None = None
        """Why the state's coordinator did not do what it was asked last."""
        self._loading_since_ms = clock.monotonic_ms()
        """When it began to load the state; of no meaning once it serves."""
        self._wakers: dict[Callable[[], None], None] = {}
        self._adopt()

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads the partition in its term."""
        return (
            self.stage is not Stage.CLOSED
            and self.partition.replica.is_serving
            and self.partition.term == self.term
        )

    def share(self, group: str) -> SharePartition | None:
        """Return a group's state; None while it is being loaded or opened.

        Raises NotLeader, ShareStateFull.
        """
        if self.stage is Stage.CLOSED:
            raise NotLeader(None)
        if self.stage is Stage.ADOPTING or self._must_look:
            return None
        if group in self._refused:
            raise self._refused[group]
        found = self._groups.get(group)
        if found is None and group not in self._opening:
            self._open(group)
            return self._groups.get(group)
        return found

    def look_again(self, group: str) -> None:
        """Hand out no more before a group was compared with what is written of it."""
        if group in self._groups:
            self._must_look = True
            self._write()

    def groups(self) -> Sequence[SharePartition]:
        """Return the groups that are open."""
        return tuple(self._groups.values())

    def lag(self, share: SharePartition) -> int:
        """Return how many records that members may read a group has not done."""
        return share.lag(self.partition.first_offset, self.partition.high_watermark)

    def held_ms_max(self, share: SharePartition) -> int:
        """Return how long a group's oldest lock has been held; 0 if there is none."""
        return share.held_ms_max(self._clock.monotonic_ms()) or 0

    @property
    def acks_waiting(self) -> int:
        """How many acknowledgements are not durable yet."""
        return len(self._done) + len(self._next_done)

    @property
    def waits_ms(self) -> int:
        """How long the state, or the oldest acknowledgement, waits for the state's coordinator."""
        since_ms = [one[0].since_ms for one in (self._done, self._next_done) if one]
        if self.stage is Stage.ADOPTING:
            since_ms.append(self._loading_since_ms)
        now_ms = self._clock.monotonic_ms()
        return now_ms - min(since_ms, default=now_ms)

    # ── what members do ──────────────────────────────────────────────────────────────────────

    def take(
        self,
        group: str,
        member: str,
        records_max: int,
        bytes_max: int,
        *,
        whole_batches: bool = False,
    ) -> Taken:
        """Hand out records to a member; raises what `share` and reading the partition do.

        With `whole_batches` there may be more than `records_max`, up to the end of a batch:
        otherwise the rest of the batch would be sent once more.
        """
        share = self.share(group)
        if share is None:
            return NOTHING
        partition, now_ms = self.partition, self._clock.monotonic_ms()
        share.log_starts_at(partition.first_offset)
        only_stable = self._settings.of(group).only_committed
        below = partition.stable_offset if only_stable else None
        taken = NOTHING
        for _ in range(READS_MAX):
            first = share.next_available()
            if first is None:
                break
            data = partition.read(first, min(bytes_max, self._bytes_for(records_max)), below=below)
            if not data:
                break
            aborted = partition.aborted(first, partition.high_watermark) if only_stable else ()
            batches = Batches(data, first, aborted)
            self._record_bytes = len(data) // (batches.end - batches.base)
            wanted = batches.whole(records_max) if whole_batches else records_max
            acquired = share.take(
                member, batches.spans, wanted, now_ms, read_from=first, read_to=batches.end
            )
            if acquired:
                taken = Taken(batches.cut(acquired[0].first, acquired[-1].last), acquired)
                break
        self._note(group)
        return taken

    def _bytes_for(self, records: int) -> int:
        """Return how much to read for so many records: reading all there is would take long."""
        return READ_BYTES_MIN + 2 * records * self._record_bytes

    def settle(self, group: str, member: str, acks: Sequence[AckBatch], done: Done) -> None:
        """Settle what a member holds; `done` is called when that is durable, or not known to be.

        Raises InvalidRecordState, InvalidAcknowledgement, NotCoordinator; then nothing has changed.
        """
        if self.acks_waiting >= ACKS_WAITING_MAX:
            raise NotCoordinator("too many acknowledgements wait for the coordinator of the state")
        share = self._groups.get(group)
        if share is None:
            raise InvalidRecordState("the partition has a new leader since: the records come again")
        now_ms = self._clock.monotonic_ms()
        share.settle(member, acks, now_ms)
        self._next_done.append(_Waiting(group, done, now_ms))
        self._note(group)
        self._wake()

    def release(self, group: str, member: str) -> None:
        """Release everything that a member holds."""
        share = self._groups.get(group)
        if share is not None:
            share.drop(member, self._clock.monotonic_ms())
            self._note(group)
            self._wake()

    def when_more(self, callback: Callable[[], None]) -> None:
        """Call back once when there may be more to hand out, unless told to `forget`."""
        self._wakers[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        """Cancel a callback; one that was called need not be cancelled."""
        self._wakers.pop(callback, None)

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def tick(self) -> None:
        """Let locks expire, and repeat what was not answered."""
        if not self.is_current:
            self.close()
            return
        now_ms = self._clock.monotonic_ms()
        self._refused.clear()
        expired = 0
        for group, share in self._groups.items():
            share.limits = self._settings.of(group).limits
            if share.due_ms is not None and share.due_ms <= now_ms:
                expired += share.expire(now_ms, EXPIRED_MAX)
                self._changed[group] = None
        if not self._is_asking and now_ms >= self._ask_again_ms:
            if self._is_adopted and self.stage is Stage.SERVING:
                self._write()
            else:
                self._adopt()
        if expired:
            self._wake()

    def close(self) -> None:
        """Forget everything: another leader continues from what is written."""
        if self.stage is Stage.CLOSED:
            return
        self.stage = Stage.CLOSED
        gone = {*self._groups, *self._opening}
        self._groups.clear()
        self._opening.clear()
        self._fail(gone)
        self._wake()

    # ── the state's coordinator ──────────────────────────────────────────────────────────────

    def _adopt(self) -> None:
        if not self.is_current:
            self.close()
            return
        known = self.partition.end_of_term(self._since)
        since, first = known or (self._since, self.partition.first_offset)
        self._is_asking = True
        command = Adopt(
            place=self.place, term=self.term, serial=self._serial, since=since, first=first
        )
        self._desk.ask(self.place, command, self._adopted)

    def _adopted(self, answer: Adopted | AdoptedBefore | KafkaesqueError) -> None:
        self._is_asking = False
        if self.stage is Stage.CLOSED:
            return
        if not self.is_current:
            self.close()
        elif isinstance(answer, AdoptedBefore):
            self._since = answer.term
            self._adopt()
        elif isinstance(answer, Adopted):
            self._is_adopted, self._must_look, self.trouble = True, False, None
            gone = self._restore(answer.records)
            self.stage = Stage.SERVING
            self._fail(gone)
            self._write()
            self._wake()
        elif isinstance(answer, FencedTerm):
            self.close()
        else:
            self._ask_later(answer)

    def _ask_later(self, trouble: KafkaesqueError) -> None:
        self.trouble = trouble
        self._ask_again_ms = self._clock.monotonic_ms() + RETRY_MS

    def _restore(self, records: Sequence[MachineRecord]) -> set[str]:
        """Load groups, and return those that an administrator has changed or deleted meanwhile.

        The others keep what their members hold: it must not go to two of them.
        """
        saved = groups_of(records)
        gone = set(self._groups)
        for group in saved:
            limits = self._settings.of(group).limits
            found = SharePartition.restored(self.place, group, records, limits, self._tally)
            known = self._groups.get(group)
            if known is not None and _is_same(known, found):
                gone.discard(group)
                continue
            if self._opening.pop(group, None) is not None:
                gone.add(group)
            self._groups[group] = found
            self._forget(group)
        for group in gone.difference(saved):
            del self._groups[group]
            self._forget(group)
        return gone

    def _forget(self, group: str) -> None:
        self._changed.pop(group, None)
        self._unwritten.pop(group, None)

    def _open(self, group: str) -> None:
        settings = self._settings.of(group)
        self._opening[group] = SharePartition(
            self.place,
            group,
            settings.first_offset(self.partition, self._clock.now_ms()),
            settings.limits,
            self._clock.now_ms(),
            self._tally,
        )
        self._note(group)

    def _note(self, group: str) -> None:
        """Note that a group may have changed, and write that as soon as possible."""
        self._changed[group] = None
        self._write()

    def _write(self) -> None:
        if self._is_asking or self.stage is not Stage.SERVING:
            return
        if self._must_look:
            self.stage, self._loading_since_ms = Stage.ADOPTING, self._clock.monotonic_ms()
            self._adopt()  # a second time in its term: that changes nothing
            return
        if not self._is_adopted:  # after a write whose outcome is unknown: the next tick adopts
            return
        changed, self._changed = self._changed, {}
        for group in changed:
            share = self._groups.get(group) or self._opening.get(group)
            changes = () if share is None else share.changes()
            if changes:
                unwritten = self._unwritten.setdefault(group, {})
                unwritten.update((record.key, record) for record in changes)
        self._done += self._next_done
        self._next_done = []
        if not self._unwritten:
            self._answer_done()
            return
        self._is_asking = True
        shares = {**self._groups, **self._opening}
        command = WriteState(
            place=self.place,
            term=self.term,
            serial=self._serial,
            generations={group: shares[group].generation for group in self._unwritten},
            records=tuple(one for found in self._unwritten.values() for one in found.values()),
            opens=tuple(group for group in self._unwritten if group in self._opening),
        )
        self._desk.ask(self.place, command, partial(self._written, tuple(self._opening)))

    def _written(self, opened: Sequence[str], answer: Written | KafkaesqueError) -> None:
        self._is_asking = False
        if isinstance(answer, REFUSALS):
            self._tally.writes_refused += 1
        if self.stage is not Stage.SERVING:
            return
        if isinstance(answer, FencedTerm):
            self.close()
        elif isinstance(answer, FencedGeneration):
            self._must_look = True
            self._write()
        elif isinstance(answer, ShareStateFull) and opened:
            self._refuse(opened, answer)
        elif isinstance(answer, KafkaesqueError):
            if isinstance(answer, OutcomeUnknown):
                self._serial, self._is_adopted = self._desk.next_serial(), False
            self._ask_later(answer)
        else:
            self.trouble = None
            self._confirmed(opened)

    def _confirmed(self, opened: Sequence[str]) -> None:
        self._unwritten.clear()  # what has changed meanwhile is not among it yet
        for group in opened:
            self._groups[group] = self._opening.pop(group)
        self._answer_done()
        if self._changed or self._next_done or self._must_look:
            self._write()
        if opened:
            self._wake()

    def _answer_done(self) -> None:
        done, self._done = self._done, []
        for one in done:
            one.done(None)

    def _refuse(self, opened: Sequence[str], error: ShareStateFull) -> None:
        """Open no more groups, so that those that are open go on."""
        for group in opened:
            del self._opening[group]
            self._forget(group)
            self._refused[group] = error
        self._write()
        self._wake()

    def _fail(self, groups: Set[str]) -> None:
        """Answer acknowledgements whose groups are gone.

        Those that are in a write may count nevertheless; the records of the others come again.
        """
        sent = [one for one in self._done if one.group in groups]
        kept = [one for one in self._next_done if one.group in groups]
        self._done = [one for one in self._done if one.group not in groups]
        self._next_done = [one for one in self._next_done if one.group not in groups]
        text = "the partition has a new leader: the acknowledgement may count"
        for one in sent:
            one.done(OutcomeUnknown(text))
        for one in kept:
            one.done(NotLeader(None))

    def _wake(self) -> None:
        if self._wakers:
            wakers, self._wakers = self._wakers, {}
            for wake in wakers:
                wake()


def _is_same(known: SharePartition, found: SharePartition) -> bool:
    """Return whether nobody has set the start, or deleted the group, since it was loaded."""
    return (known.generation, known.opened_ms) == (found.generation, found.opened_ms)
