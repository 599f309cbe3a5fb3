"""A real broker on a simulated disk, used through its handlers: no sockets, no time."""

import random
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.store import Store
from kafkaesque.config import BrokerConfig, LogConfig
from kafkaesque.errors import KafkaesqueError, LogError
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.server.handlers import fetch
from kafkaesque.server.requests.session import Session
from kafkaesque.sim.disk import SimDisk
from kafkaesque.wire.messages.fetch import FetchRequest, FetchResponse
from tests.broker.no_peers import MEMBERSHIP
from tests.heard import Heard
from tests.log.logs import START_MS, TINY, HandClock
from tests.sim.disks import SMALL_PAGES, Later

T = TypeVar("T")


class MemoryBroker:
    """One broker that finishes its work before a method returns."""

    def __init__(self, log: LogConfig = TINY) -> None:
        self.later = Later()
        self.failures: list[LogError] = []
        disk = SimDisk(random.Random(1), self.later, SMALL_PAGES)
        clock = HandClock()
        self.heard = Heard(clock)
        store = Store.open(disk, log, clock, 1, self.failures.append, self.heard)
        self.later.take_slices(store.slices)
        self.broker = Broker(
            1, store, clock, random.Random(1), BrokerConfig(), self.failures.append, MEMBERSHIP
        )
        self.session = Session(broker=self.broker, host="127.0.0.1", port=9092)
        self.broker.start(lambda: None)
        self.settle()

    def settle(self) -> None:
        """Let the disk answer until no requests are left."""
        self.broker.flush()
        while self.later.waiting:
            self.later.play()
            self.broker.flush()

    def create(self, name: str, partitions: int) -> bytes:
        """Create a topic; return its id."""
        errors: list[KafkaesqueError | None] = []
        self.broker.create_topic(name, partitions, {}, errors.append)
        self.settle()
        assert errors == [None]
        return self.broker.catalog.topics[name].topic_id

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.broker.partition(topic, index)

    def append(
        self, topic: str, index: int = 0, *values: bytes, times_ms: Sequence[int] = ()
    ) -> int:
        """Append one batch and let it be committed; return its base offset."""
        records = [
            Record(
                offset=place,
                timestamp_ms=times_ms[place] if times_ms else START_MS,
                key=None,
                value=value,
            )
            for place, value in enumerate(values)
        ]
        outcomes: list[Outcome] = []
        batch = memoryview(build_batch(records))
        appended = self.partition(topic, index).append(batch, outcomes.append)
        self.settle()
        assert outcomes == [Outcome.COMMITTED]
        return appended.offset

    def delete_before(self, topic: str, index: int, offset: int) -> None:
        self.partition(topic, index).replica.log.trim(offset)
        self.settle()

    def fetch(self, request: FetchRequest, version: int = 12) -> FetchResponse:
        """Handle a request that must not wait."""
        return at_once(fetch.handle(request, version, self.session))


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run something that must not wait."""
    try:
        work.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    raise AssertionError("it waits")
