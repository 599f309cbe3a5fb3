"""A query's sink for tests: tasks that prepare transactions, and drivers that decide batches."""

from kafkaesque.machines.transactions.transaction_commands import (
    BatchDecided,
    BatchDescribed,
    DecideBatch,
    DescribeBatch,
    DriverRegistered,
    Producer,
    RegisterDriver,
)
from kafkaesque.transactional_ids import BatchTransactionId
from tests.machines.transaction_desk import A, Desk

QUERY, SINK = "q", "s"


def named(batch: int, driver: int, task: int = 0, attempt: int = 0) -> str:
    """Return a transactional id of the sink."""
    return str(BatchTransactionId(QUERY, SINK, batch, driver, task, attempt))


class BatchDesk(Desk):
    """A desk with one sink."""

    def register(self) -> int:
        """Register a new driver; returns its epoch."""
        command = RegisterDriver(query=QUERY, sink=SINK)
        answer = self.asked(lambda to: self.machine.register(command, to, self.now))
        assert isinstance(answer, DriverRegistered)
        return answer.driver_epoch

    def begin(self, batch: int, driver: int, task: int = 0, attempt: int = 0) -> Producer:
        """Let a task attempt write something."""
        name = named(batch, driver, task, attempt)
        producer = self.init(name=name)
        self.add(producer, A, name=name)
        return producer

    def ready(
        self, batch: int, driver: int, task: int = 0, attempt: int = 0
    ) -> dict[str, Producer]:
        """Let a task attempt write and prepare; returns what its driver learns."""
        producer = self.begin(batch, driver, task, attempt)
        name = named(batch, driver, task, attempt)
        self.prepare(producer, name=name)
        return {name: producer}

    def decide(
        self, batch: int, driver: int, producers: dict[str, Producer]
    ) -> BatchDecided | None:
        """Let a driver decide; None while partitions wait for markers."""
        command = DecideBatch(
            query=QUERY, sink=SINK, batch=batch, driver_epoch=driver, producers=producers
        )
        answer = self.asked(lambda to: self.machine.decide_batch(command, to, self.now))
        assert answer is None or isinstance(answer, BatchDecided)
        return answer

    def commit(self, batch: int, driver: int, producers: dict[str, Producer]) -> BatchDecided:
        """Let a driver decide, and write all markers."""
        answer = self.decide(batch, driver, producers)
        if answer is None:
            self.complete()
            answer = self.decide(batch, driver, producers)
        assert answer is not None
        return answer

    def decision(self, batch: int) -> tuple[str, ...] | None:
        """Return the decision of a batch."""
        command = DescribeBatch(query=QUERY, sink=SINK, batch=batch)
        answer = self.asked(lambda to: self.machine.describe_batch(command, to))
        assert isinstance(answer, BatchDescribed)
        return answer.transactional_ids

    @property
    def ends(self) -> dict[int, bool]:
        """How transactions ended, by producer id."""
        return {producer.producer_id: is_commit for producer, is_commit in self.markers}
