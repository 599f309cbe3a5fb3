"""One partition of `__consumer_offsets` and the consumer groups on it: carries out decisions."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from kafkaesque.ages import Ages
from kafkaesque.broker.machine_host import MachineHost
from kafkaesque.broker.machine_snapshots import MachineSnapshots
from kafkaesque.broker.machine_trim import MachineSaver, trim_covered
from kafkaesque.broker.producers import NO_NUMBER
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.transaction_ports import Guards, Marker
from kafkaesque.broker.watermark import Outcome
from kafkaesque.clock import Clock, clock_ages
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import DiskFull, GroupError, LogError, NotCoordinator, RaftError
from kafkaesque.machines.group_commands import (
    Answer,
    Decision,
    Now,
    Reply,
    ReplyTo,
    TransactionEnd,
)
from kafkaesque.machines.groups import Groups
from kafkaesque.machines.machine import MachineRecord

Decide: TypeAlias = Callable[[Groups, Now], Decision]

BATCH_BYTES = 1 << 20
"""A batch is ended at this size: a topic with many readers has many offsets to forget."""


ENDED_MAX = 10_000
"""Producers of whom it is remembered which of their transactions ended last."""


class GroupCoordinator:
    """The groups on one replica. Answers wait for the commit of all that they were made from.

    Whoever waits when leadership is lost is told NotCoordinator: what was asked for may have come
    to be or not, and the next coordinator knows.
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        config: GroupConfig,
        snapshots: MachineSnapshots,
        failed: Callable[[LogError], None],
    ) -> None:
        self.replica = replica
        self.ages: Callable[[], Ages | None] = clock_ages(clock)
        """Says how old things are; None while the wall clock is in doubt."""
        self.guards = Guards()
        """The checks of transactional commits that are under way."""
        self._clock = clock
        self._config = config
        self._expires_ms = clock.monotonic_ms() + config.offsets_check_ms
        self._host = MachineHost(replica, clock, self._new, _ignore, failed, snapshots)
        self._host.on_lost = self._on_lost
        self._snapshots = snapshots
        self._ended: dict[int, int] = {}
        """By producer the number of its last transaction that has ended here in this term."""
        self._gone_topics: list[bytes] = []
        """Topics whose offsets are to be forgotten: few, those deleted during a hand-over."""
        self._saver = MachineSaver(replica, clock, self._new, failed, snapshots)

    def _new(self) -> Groups:
        return Groups(self._config)

    def configure(self, config: GroupConfig) -> None:
        """Let other settings hold for what is decided from now on."""
        self._config = config
        if self._host.is_hosted:
            self._host.machine.configure(config)

    @property
    def is_hosted(self) -> bool:
        """Whether it coordinates now: it leads its partition and knows what is in it."""
        return self._host.is_hosted

    @property
    def members_bytes(self) -> int:
        """About what the members of its groups take."""
        return self._host.machine.members_bytes if self._host.is_hosted else 0

    @property
    def offsets_bytes(self) -> int:
        """About what the offsets of its groups take."""
        return self._host.machine.offsets_bytes if self._host.is_hosted else 0

    def ask(self, decide: Decide, to: ReplyTo) -> None:
        """Have something decided, and `to` told the answer; an error is an answer too."""
        if not self._host.may_decide:
            to(NotCoordinator("this broker does not coordinate the group now"))
            return
        try:
            decision = decide(self._host.machine, self._now())
        except GroupError as error:
            decision = Decision(replies=[Reply(to, error)])
        self._carry_out(decision)

    def end_transaction(self, marker: Marker, told: Callable[[GroupError | None], None]) -> None:
        """Let the offsets of a transaction hold, or drop them; `told` when that is committed.

        A marker that comes again, and late, must not end the next transaction: it changes nothing.
        """
        producer_id = marker.producer.producer_id
        if (
            self._host.is_hosted
            and marker.number != NO_NUMBER
            and self.has_ended(producer_id, marker.number)
        ):
            self._host.when_committed(
                lambda outcome: told(None if outcome is Outcome.COMMITTED else _lost())
            )
            return
        self.guards.marked(producer_id)
        command = TransactionEnd(producer_id=producer_id, is_commit=marker.is_commit)

        def reply(answer: Answer) -> None:
            told(answer if isinstance(answer, GroupError) else None)

        def decide(groups: Groups, _: Now) -> Decision:
            if marker.number != NO_NUMBER:
                self._note_end(producer_id, marker.number)
            return groups.end_transaction(command, reply)

        self.ask(decide, reply)

    def _note_end(self, producer_id: int, number: int) -> None:
        self._ended[producer_id] = number
        if len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]

    def has_ended(self, producer_id: int, number: int) -> bool:
        """Return whether a producer's transaction of this number is known to have ended here."""
        return number <= self._ended.get(producer_id, NO_NUMBER)

    def tick(self) -> None:
        """Let time pass for the groups, and save their state now and then."""
        self._host.tick()
        self._saver.tick()
        trim_covered(self.replica, self._snapshots)
        self._forget_topics()
        if not self._host.may_decide:
            return
        groups, now = self._host.machine, self._now()
        self._carry_out(groups.tick(now))
        if now.monotonic_ms >= self._expires_ms:
            self._expires_ms = now.monotonic_ms + self._config.offsets_check_ms
            self._carry_out(groups.expire_offsets(now))

    def forget_topic(self, topic_id: bytes) -> None:
        """Forget all offsets of a topic that was deleted, as soon as that can be written."""
        if self._host.is_hosted:
            self._gone_topics.append(topic_id)
            self._forget_topics()

    def _forget_topics(self) -> None:
        while self._gone_topics and self._host.may_decide:
            self._carry_out(self._host.machine.forget_topic(self._gone_topics.pop()))

    def stop(self) -> None:
        """Save the state before a clean stop."""
        self._host.stop()

    def close(self) -> None:
        """Coordinate no more, because the partition has left this broker."""
        self._host.close()

    def _now(self) -> Now:
        clock = self._clock
        return Now(clock.monotonic_ms(), clock.now_ms(), self.ages())

    def _carry_out(self, decision: Decision) -> None:
        replies = decision.replies

        def done(outcome: Outcome) -> None:
            for to, answer in replies:
                to(answer if outcome is Outcome.COMMITTED else _lost())

        try:
            if decision.records:
                *before, last = _batches(decision.records)
                for records in before:
                    self._host.write(records, _ignore)
                self._host.write(last, done)  # what precedes it is committed before it
            elif replies:
                self._host.when_committed(done)
        except RaftError:
            done(Outcome.UNKNOWN)
        except DiskFull:
            # What was decided is not written, so the groups must be what the log says they are.
            self._host.rebuild()
            done(Outcome.UNKNOWN)

    def _on_lost(self, groups: Groups) -> None:
        self._ended.clear()
        self._gone_topics.clear()
        for to in groups.waiting():
            to(_lost())


def _batches(records: Sequence[MachineRecord]) -> Iterator[list[MachineRecord]]:
    """Split records into batches of sane size; each says something by itself."""
    batch: list[MachineRecord] = []
    size = 0
    for record in records:
        if batch and size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.key) + len(record.value or b"")
    yield batch


def _lost() -> NotCoordinator:
    return NotCoordinator("leadership was lost meanwhile: ask the next coordinator")


def _ignore(_: object) -> None:
    """Nobody waits for the groups to be there."""
