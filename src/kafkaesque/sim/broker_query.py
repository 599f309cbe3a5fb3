"""A query on a simulated cluster: tasks that prepare transactions, drivers that decide batches.

Drivers follow one another: each dies when it cannot continue, and the next starts with the batch
that the one before was at. The work it left stays, and sometimes the replaced driver continues
nevertheless. `sim/broker_transactors.py` checks the results.
"""

import random

from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.machines.transactions.transaction_commands import (
    BatchDecided,
    BatchDescribed,
    DecideBatch,
    DescribeBatch,
    DriverRegistered,
    Inited,
    Prepared,
    Producer,
    RegisterDriver,
)
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    TransactionError,
)
from kafkaesque.sim.broker_life import PARTITIONS, TRIES_MAX, Life, Living, Step
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation
from kafkaesque.transactional_ids import BatchTransactionId

SINK = "sink"
TASKS_MAX = 3


class BatchTale:
    """One batch: its written values, the transactions tried for it, and its decision."""

    def __init__(self) -> None:
        self.values: dict[str, list[bytes]] = {}
        """The values that each attempt of a task wrote, by its transactional id."""
        self.tried: list[frozenset[str]] = [frozenset()]
        """The sets of transactions that drivers asked for; the empty set while it is undecided."""
        self.decided: frozenset[str] | None = None

    def learn(self, names: tuple[str, ...]) -> None:
        """Record the decision; it is final, and one that a driver asked for."""
        if self.decided not in (None, frozenset(names)):
            raise Violation(f"a batch was decided twice: {names} after {self.decided}")
        if frozenset(names) not in self.tried:
            raise Violation(f"a batch consists of transactions that no driver asked for: {names}")
        self.decided = frozenset(names)

    def check(self, found: set[bytes]) -> None:
        """Compare with the values visible at the end."""
        seen = {name for name, values in self.values.items() if found.intersection(values)}
        torn = [name for name in seen if not found.issuperset(self.values[name])]
        if torn:
            raise Violation(f"{torn[0]} is only partly visible")
        if self.decided is not None and seen != self.decided:
            raise Violation(f"a batch was decided as {self.decided}, and {seen} is seen")
        if seen not in self.tried:
            raise Violation(f"of a batch {seen} is seen: neither all nor nothing")


class Query(Living):
    """One query with one sink, which writes to the ledger."""

    def __init__(self, world: BrokerWorld, chance: random.Random, name: str) -> None:
        super().__init__(world, chance, name)
        self.tales: dict[int, BatchTale] = {}
        self._batch = 0
        self._driver = 0
        self._prepared: dict[str, Producer] = {}
        self._zombie: tuple[int, int, dict[str, Producer]] | None = None
        """Epoch, batch and transactions of the driver that was replaced last."""

    def _live(self) -> Life:
        while True:
            yield self._pause(50)
            before = self._driver, self._batch, self._prepared
            registered = yield self._register()
            if not isinstance(registered, DriverRegistered):
                continue
            if registered.driver_epoch <= self._driver:
                raise Violation(f"{self.name}: driver {self._driver} was followed by an older one")
            self._zombie = before if self._driver else None
            self._driver, self._prepared = registered.driver_epoch, {}
            self._world.count("drivers")
            while (yield from self._process()):
                pass

    def _process(self) -> Life:
        """Write one batch, or find that it is decided; return whether the driver may continue."""
        tale = self.tales.setdefault(self._batch, BatchTale())
        self._prepared = {}
        described = yield self._describe()
        if not isinstance(described, BatchDescribed):
            return False
        if described.transactional_ids is not None:
            tale.learn(described.transactional_ids)
            self._world.count("batches found decided")
        elif not (yield from self._write_all(tale)):
            return False
        if self._zombie is not None and self._chance.random() < 0.5:
            yield from self._rise(*self._zombie)
        if self._chance.random() < 0.1:
            return False  # it dies before it decides
        return (yield from self._settle(tale))

    def _write_all(self, tale: BatchTale) -> Life:
        for task in range(1 + self._chance.randrange(TASKS_MAX)):
            chosen = None
            for attempt in range(1 + self._chance.randrange(2)):
                one = BatchTransactionId(self.name, SINK, self._batch, self._driver, task, attempt)
                producer = yield from self._work(tale, str(one))
                if producer is not None:
                    chosen = str(one), producer
            if chosen is None:
                return False
            self._prepared[chosen[0]] = chosen[1]
        return True

    def _work(self, tale: BatchTale, name: str) -> Life:
        """Run one attempt of a task; return the producer that prepared its transaction, if any."""
        found = yield self._init(name)
        if not isinstance(found, Inited):
            return None
        values = tale.values[name] = []
        for index in self._chance.sample(range(PARTITIONS), 1 + self._chance.randrange(3)):
            value = f"{name}.{index}".encode()
            values.append(value)
            if not (yield from self._append(name, index, found.producer, value)):
                return None
        if self._chance.random() < 0.05:
            return None  # the task is lost, with its transaction open
        for _ in range(TRIES_MAX):
            if isinstance((yield self._prepare(name, found.producer)), Prepared):
                return found.producer
            yield self._pause(30)
        return None

    def _append(self, name: str, index: int, producer: Producer, value: bytes) -> Life:
        for _ in range(TRIES_MAX):
            outcome = yield self._send(name, index, producer, 0, value, adds=True)
            if outcome is Outcome.COMMITTED:
                return True
            yield self._pause(30)
        return False

    def _settle(self, tale: BatchTale) -> Life:
        tale.tried.append(frozenset(self._prepared))
        for _ in range(2 * TRIES_MAX):
            answer = yield self._ask_decision(self._batch, self._driver, self._prepared)
            if isinstance(answer, BatchDecided):
                tale.learn(answer.transactional_ids)
                self._batch += 1
                self._world.count("batches decided")
                return True
            is_waiting = isinstance(answer, ConcurrentTransactions)
            if isinstance(answer, TransactionError) and not is_waiting:
                return False
            yield self._pause(50)
        self._world.count("batches of unknown end")
        return False

    def _rise(self, driver: int, batch: int, prepared: dict[str, Producer]) -> Life:
        """Continue as the replaced driver, and as its task; both must be refused."""
        answer = yield self._ask_decision(batch, driver, prepared)
        if isinstance(answer, BatchDecided):
            raise Violation(f"{self.name}: a fenced driver has decided a batch")
        name = str(BatchTransactionId(self.name, SINK, batch, driver, TASKS_MAX, 0))
        came = yield self._init(name)
        if isinstance(came, Inited):
            raise Violation(f"{self.name}: a task of a fenced driver has begun")
        if isinstance(answer, TransactionError) and isinstance(came, TransactionError):
            self._world.count("fenced drivers refused")

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def _register(self) -> Step:
        return self._ask(RegisterDriver(query=self.name, sink=SINK))

    def _describe(self) -> Step:
        return self._ask(DescribeBatch(query=self.name, sink=SINK, batch=self._batch))

    def _ask_decision(self, batch: int, driver: int, prepared: dict[str, Producer]) -> Step:
        command = DecideBatch(
            query=self.name,
            sink=SINK,
            batch=batch,
            driver_epoch=driver,
            producers=dict(prepared),
        )
        return self._ask(command)
