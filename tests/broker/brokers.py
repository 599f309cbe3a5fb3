"""A whole broker on a simulated disk, driven by hand."""

import random

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.store import Store
from kafkaesque.config import BrokerConfig
from kafkaesque.errors import KafkaesqueError, LogError
from kafkaesque.record.read import read_records
from kafkaesque.record.view import split_batches
from kafkaesque.sim.disk import CrashPolicy, SimDisk
from tests.broker.no_peers import MEMBERSHIP
from tests.broker.nodes import a_batch
from tests.heard import Heard
from tests.log.logs import TINY, HandClock
from tests.sim.disks import SMALL_PAGES, Later

Answers = list[KafkaesqueError | None]


class BrokerNode:
    """Node 1, alone. With `holds_syncs` the disk answers only when the test says `sync`."""

    def __init__(self, seed: int = 1, config: BrokerConfig | None = None) -> None:
        self._config = config or BrokerConfig()
        self.later = Later()
        self.clock = HandClock()
        self.holds_syncs = False
        self.is_ready = False
        self.failures: list[LogError] = []
        self.heard = Heard(self.clock)
        self.disk = SimDisk(random.Random(seed), self.later, SMALL_PAGES)
        self._chance = random.Random(seed)
        self.start()

    def start(self) -> None:
        """Start the broker."""
        self.later.waiting.clear()
        self.is_ready = False
        store = Store.open(self.disk, TINY, self.clock, 1, self.failures.append, self.heard)
        self.later.take_slices(store.slices)
        self.broker = Broker(
            1, store, self.clock, self._chance, self._config, self.failures.append, MEMBERSHIP
        )
        self.broker.start(self._ready)
        self.sync()
        assert self.is_ready or self.failures

    def crash(self, policy: CrashPolicy = CrashPolicy.TORN) -> None:
        """Lose power, and start again."""
        self.disk.crash(policy)
        self.start()

    def restart(self) -> None:
        """Stop cleanly and start again."""
        self.broker.stop()
        self.disk.kill()
        self.start()

    def sync(self) -> None:
        """Let the disk answer until no requests are left."""
        self.broker.flush()
        while self.later.waiting:
            self.later.play()
            self.broker.flush()

    def tick(self, count: int = 1) -> None:
        """Let ticks pass, and the disk answer after each."""
        for _ in range(count):
            self.broker.tick()
            self.after_event()

    def after_event(self) -> None:
        """Let the disk answer unless the test holds it back."""
        self.broker.flush()
        if not self.holds_syncs:
            self.sync()

    def create(self, name: str, partitions: int = 1, **settings: str) -> Answers:
        """Create a topic; the list receives the answer."""
        answers: Answers = []
        named = {key.replace("_", "."): value for key, value in settings.items()}
        self.broker.create_topic(name, partitions, named, answers.append)
        self.after_event()
        return answers

    def delete(self, name: str) -> Answers:
        """Delete a topic; the list receives the answer."""
        answers: Answers = []
        self.broker.delete_topic(name, answers.append)
        self.after_event()
        return answers

    def produce(self, name: str, *values: bytes, partition: int = 0) -> list[Outcome]:
        """Append a batch; the list receives its outcome."""
        outcomes: list[Outcome] = []
        batch = memoryview(a_batch(*values))
        self.broker.partition(name, partition).append(batch, outcomes.append)
        self.after_event()
        return outcomes

    def values(self, name: str, partition: int = 0) -> list[bytes | None]:
        """Read every record of a partition that a consumer can see."""
        return values_of(self.broker.partition(name, partition))

    def folders(self) -> list[str]:
        """The folders of topics that exist or are being deleted."""
        return [name for name in self.disk.list("") if name not in ("journal", "cluster-metadata")]

    def groups(self, name: str) -> int:
        """How many groups of topics with this name the journal has."""
        groups = self.broker._store.journal.groups
        return sum(group.startswith(f"{name}.") for group in groups)

    def _ready(self) -> None:
        self.is_ready = True


def values_of(partition: Partition) -> list[bytes | None]:
    """Read every record of a partition that a consumer can see."""
    found: list[bytes | None] = []
    offset = partition.first_offset
    while offset < partition.high_watermark:
        for view in split_batches(partition.read(offset, 1 << 20)):
            found += [r.value for r in read_records(view) if r.offset >= offset]
            offset = view.end_offset
    return found
