"""A coordinator's desk for tests: asks the machine, applies at once, and has markers written."""

from collections.abc import Callable

from kafkaesque.ages import Ages
from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    Added,
    Answer,
    End,
    Ended,
    Init,
    Inited,
    Prepare,
    Producer,
    Verified,
    Verify,
)
from kafkaesque.machines.transactions.transaction_records import ENDING, Place, State, Transaction
from kafkaesque.machines.transactions.transactions import Transactions

NAME = "t"
A: Place = (b"a" * 16, 0)
B: Place = (b"b" * 16, 1)
WALL_MS = 1_700_000_000_000
TIMEOUT_MS = 1_000


class Desk:
    """One machine, its clock, and everything that it wrote."""

    def __init__(self, config: TransactionConfig | None = None) -> None:
        self.config = config or TransactionConfig()
        self.machine = Transactions(self.config)
        self.now = Now(10_000, WALL_MS, Ages(now_ms=WALL_MS))
        self.fresh_ids = 0
        self.log: list[MachineRecord] = []
        self.markers: list[tuple[Producer, bool]] = []

    def init(
        self,
        expected: Producer | None = None,
        timeout_ms: int = TIMEOUT_MS,
        *,
        name: str = NAME,
    ) -> Producer:
        self.fresh_ids += 1
        command = Init(
            transactional_id=name,
            timeout_ms=timeout_ms,
            expected=expected,
            fresh_id=100 + self.fresh_ids,
        )
        answer = self.asked(lambda to: self.machine.init(command, to, self.now))
        if answer is None:  # the transaction in the way is being aborted
            self.complete()
            answer = self.asked(lambda to: self.machine.init(command, to, self.now))
        assert isinstance(answer, Inited)
        return answer.producer

    def add(self, producer: Producer, *places: Place, name: str = NAME) -> int:
        command = Add(transactional_id=name, producer=producer, places=places or (A,))
        answer = self.asked(lambda to: self.machine.add(command, to, self.now))
        assert isinstance(answer, Added)
        return answer.number

    def missing(self, producer: Producer, *places: Place) -> frozenset[Place]:
        command = Verify(transactional_id=NAME, producer=producer, places=places)
        answer = self.asked(lambda to: self.machine.verify(command, to))
        assert isinstance(answer, Verified)
        return answer.missing

    def end(
        self,
        producer: Producer,
        *,
        is_commit: bool = True,
        is_v2: bool = False,
        name: str = NAME,
    ) -> Producer:
        self.fresh_ids += 1
        command = End(
            transactional_id=name,
            producer=producer,
            is_commit=is_commit,
            bumps_epoch=is_v2,
            fresh_id=100 + self.fresh_ids,
        )
        answer = self.asked(lambda to: self.machine.end(command, to, self.now))
        assert isinstance(answer, Ended)
        return answer.producer

    def prepare(self, producer: Producer, *, name: str = NAME) -> None:
        command = Prepare(transactional_id=name, producer=producer, owner="spark")
        self.asked(lambda to: self.machine.prepare(command, to, self.now))

    def keep(self) -> Inited:
        """Register a producer that keeps its prepared transaction."""
        self.fresh_ids += 1
        command = Init(
            transactional_id=NAME,
            timeout_ms=-1,
            fresh_id=100 + self.fresh_ids,
            is_two_phase=True,
            keeps_prepared=True,
        )
        answer = self.asked(lambda to: self.machine.init(command, to, self.now))
        assert isinstance(answer, Inited)
        return answer

    def complete(self) -> None:
        """Write the markers of all decisions."""
        for name in self.machine.ending():
            known = self.machine.get(name)
            assert known is not None
            is_commit = known.state is State.PREPARE_COMMIT
            self.markers.append((Producer(known.producer_id, known.epoch), is_commit))
            self.carry_out(self.machine.completed(name, known.number, self.now))

    def pass_ms(self, time_ms: int, *, wall_ms: int | None = None) -> None:
        """Let time pass, on the wall clock differently on request, and let the machine check it."""
        wall = self.now.wall_ms + (time_ms if wall_ms is None else wall_ms)
        self.now = Now(self.now.monotonic_ms + time_ms, wall, Ages(now_ms=wall))
        self.carry_out(self.machine.tick(self.now))

    def restart(self) -> None:
        """Rebuild the machine from its log."""
        self.machine = Transactions(self.config)
        for record in self.log:
            self.machine.apply(record)

    def restore(self) -> None:
        """Rebuild the machine from its own records."""
        records = list(self.machine.records())
        self.machine = Transactions(self.config)
        for record in records:
            self.machine.apply(record)

    @property
    def known(self) -> Transaction:
        found = self.machine.get(NAME)
        assert found is not None
        return found

    def is_in(self, state: State) -> bool:
        return self.known.state is state

    @property
    def is_ending(self) -> bool:
        known = self.machine.get(NAME)
        return known is not None and known.state in ENDING

    def carry_out(self, decision: Decision) -> None:
        for record in decision.records:
            self.log.append(record)
            self.machine.apply(record)

    def asked(self, ask: Callable[[ReplyTo], Decision]) -> Answer | None:
        """Ask the machine, carry out what it decides, and return the answer if there is one."""
        answers: list[Answer] = []
        decision = ask(answers.append)
        self.carry_out(decision)
        for to, answer in decision.replies:
            to(answer)
        return answers[0] if answers else None
