"""Hosts a machine that decides: one per replica of an internal topic, active where it leads.

A command takes this path: `ask` gives it to the machine, which decides; the records are appended
and applied at once, so that the next decision sees them; replies are sent when they are committed.
The catalog (`broker/cluster/catalog_coordinator.py`), groups
(`broker/coordination/group_coordinator.py`) and transactions
(`broker/coordination/transaction_coordinator.py`) add their own parts.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from kafkaesque.ages import Ages
from kafkaesque.broker.machine_hosting.machine_host import MachineHost
from kafkaesque.broker.machine_hosting.machine_saver import Live
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.clock import clock_ages
from kafkaesque.errors import DiskFull, KafkaesqueError, NotCoordinator, RaftError
from kafkaesque.machines.decision import Command, Decider, Decision, Now, Reply
from kafkaesque.machines.machine import MachineRecord

BATCH_BYTES = 1 << 20
"""A batch ends at this size: a topic with many readers has many offsets to forget."""

NEVER_MS = 1 << 62
"""How often a machine expires entries that has none to expire."""

A = TypeVar("A")
M = TypeVar("M", bound=Decider)


class CoordinatorLoading(NotCoordinator):
    """This broker is the coordinator but still loads its state: nothing was done."""


class Coordinator(Generic[M]):
    """One machine on one replica. A reply waits for the commit of everything it is based on.

    If leadership is lost, waiting callers get an error: their commands may or may not have taken
    effect, and the next coordinator knows. `live` is for the machine's host.
    """

    def __init__(
        self,
        site: MachineSite,
        make: Callable[[], M],
        *,
        expires_every_ms: int = NEVER_MS,
        live: Callable[[], Live | None] | None = None,
    ) -> None:
        self.replica = site.replica
        self.ages: Callable[[], Ages | None] = clock_ages(site.clock)
        """Returns how old things are; None while the wall clock is in doubt."""
        self._clock = clock = site.clock
        self._expires_every_ms = expires_every_ms
        self._expires_ms = clock.monotonic_ms() + expires_every_ms
        self._gone_topics: list[bytes] = []
        """Deleted topics that the machine has not forgotten yet: few, from a hand-over."""
        self._host = MachineHost(site, make, self._on_ready, live)
        self._host.on_lost = self._on_lost

    @property
    def is_hosted(self) -> bool:
        """Whether it coordinates now: it leads its partition and has loaded its state."""
        return self._host.is_hosted

    @property
    def is_loading(self) -> bool:
        """Whether it will coordinate as soon as it has read its state."""
        return self._host.is_loading

    @property
    def machine(self) -> M | None:
        """The machine, for reading, while it coordinates; else None."""
        return self._host.machine if self._host.is_hosted else None

    # ── deciding ─────────────────────────────────────────────────────────────────────────────

    def ask(self, command: Command[A], to: Callable[[A | KafkaesqueError], None]) -> None:
        """Decide a command; `to` gets the answer once it holds, or the error."""
        if not self._host.may_decide:
            to(self._not_now())
            return
        try:
            decision = self._host.machine.decide(command, to, self._now())
        except KafkaesqueError as error:
            decision = Decision(replies=[Reply(to, error.with_traceback(None))])
        self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> None:
        records, replies = decision.records, decision.replies
        split = [records] if decision.is_one_batch else batches(records)

        def done(outcome: Outcome) -> None:
            is_committed = outcome is Outcome.COMMITTED
            failure = self._lost if records else self._not_now
            for to, answer in replies:
                to(answer if is_committed else failure())
            if records and is_committed:
                self._on_committed()

        try:
            if records:
                *before, last = split
                for batch in before:
                    self._host.write(batch, _ignore)
                self._host.write(last, done)  # earlier batches are committed before it
            elif replies:
                self._host.when_committed(done)
        except (RaftError, DiskFull) as error:
            answer = self._not_written(error)
            for to, _ in replies:
                to(answer)

    def forget_topic(self, topic_id: bytes) -> None:
        """Forget a deleted topic, as soon as that can be written."""
        if self._host.is_hosted:
            self._gone_topics.append(topic_id)
            self._forget_topics()

    def _forget_topics(self) -> None:
        while self._gone_topics and self._host.may_decide:
            self._carry_out(self._host.machine.forget_topic(self._gone_topics.pop()))

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def tick(self) -> None:
        """Advance the machine's time, and save its state periodically."""
        self._host.tick()
        self._forget_topics()
        if self._host.may_decide:
            self._pass_time(self._now())

    def _pass_time(self, now: Now) -> None:
        self._carry_out(self._host.machine.tick(now))
        if now.monotonic_ms >= self._expires_ms and self._host.may_decide:
            self._expires_ms = now.monotonic_ms + self._expires_every_ms
            self._carry_out(self._host.machine.expire(now))
            self._on_expired()

    def stop(self) -> None:
        """Save the state before a clean stop."""
        self._host.stop()

    def close(self) -> None:
        """Stop coordinating: the partition has left this broker."""
        self._host.close()

    def _now(self) -> Now:
        clock = self._clock
        return Now(clock.monotonic_ms(), clock.now_ms(), self.ages())

    # ── what coordinators of one kind add ────────────────────────────────────────────────────

    def _not_now(self) -> KafkaesqueError:
        """Return the error for a command that changed nothing: this broker does not coordinate."""
        if self._host.is_loading:
            return CoordinatorLoading("this broker is still loading its coordinator state: retry")
        return NotCoordinator("this broker is not the coordinator now")

    def _lost(self) -> KafkaesqueError:
        """Return the error for a decision that was written and may or may not be committed."""
        return lost()

    def _not_written(self, error: RaftError | DiskFull) -> KafkaesqueError:
        """Handle a decision that could not be written as a whole; return the error for its callers.

        On a full disk the machine is rebuilt from the log, which may lack what it has decided.
        """
        if isinstance(error, DiskFull):
            self._host.rebuild()
        return lost()

    def _on_ready(self, machine: M) -> None:
        """Called when it starts to coordinate."""

    def _on_committed(self) -> None:
        """Called when decisions were committed."""

    def _on_expired(self) -> None:
        """Called when the machine has expired entries, to forget what is kept beside them."""

    def _on_lost(self, machine: M) -> None:
        """Reply to all waiting callers that leadership was lost."""
        self._gone_topics.clear()
        for to in machine.waiting():
            to(lost())


def batches(records: Sequence[MachineRecord]) -> Iterator[list[MachineRecord]]:
    """Split records into batches of bounded size; each record stands on its own."""
    batch: list[MachineRecord] = []
    size = 0
    for record in records:
        if batch and size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.key) + len(record.value or b"")
    yield batch


def lost() -> NotCoordinator:
    """Return the error for callers that were waiting when leadership was lost."""
    return NotCoordinator("leadership was lost meanwhile: ask the next coordinator")


def _ignore(_: object) -> None:
    """Earlier batches need no callback: the last one has it."""
