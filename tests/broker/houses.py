"""A node with some logs and a housekeeper; the test controls the clock."""

import random
from collections.abc import Callable
from dataclasses import replace

from kafkaesque.broker.cluster.housekeeper import Housekeeper
from kafkaesque.broker.cluster.wall_clocks import ClockTold, WallClocks
from kafkaesque.broker.replication.log_settings import configure_log
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.scrubber import Scrubber
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.store import Store
from kafkaesque.config import HousekeepingConfig, LogConfig, RaftConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.sim.disk import DiskFaults, SimDisk
from kafkaesque.sim.node import open_or_refill
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import GroupId, NodeId, Offset
from tests.broker.nodes import ALONE
from tests.heard import Heard
from tests.log.logs import HandClock

GROUP = "orders/0"
SMALL = LogConfig(index_interval_bytes=100, index_sync_bytes=300, journal_rewrite_bytes=2000)
SETTINGS = TopicSettings(segment_bytes=1024)
HOUR_MS = 3600 * 1000
TICKS_MAX = 5_000


class House:
    """One node, alone in its groups, with a disk that syncs at once."""

    def __init__(self, settings: TopicSettings = SETTINGS, *, seed: int = 1) -> None:
        self.clock = HandClock()
        self.disk = SimDisk(random.Random(seed), faults=DiskFaults(page_bytes=64), clock=self.clock)
        self.settings = settings
        self.failures: list[LogError] = []
        self.heard = Heard(self.clock)
        self.acknowledged: dict[bytes, tuple[Offset, bytes | None]] = {}
        self.config = HousekeepingConfig()
        self.told: list[ClockTold] = []
        self.others: set[NodeId] = set()

    def open(self, *, groups: int = 1, voters: Voters = ALONE) -> None:
        """Start, as after any stop."""
        self.store = Store.open(self.disk, SMALL, self.clock, 1, self.failures.append, self.heard)
        self.clocks = WallClocks(1, self.clock, self.config, self.told.append, self.heard)
        self.keeper = Housekeeper(self.clock, self.config, self.clocks)
        self.replicas: dict[GroupId, Replica] = {}
        self.scrubber = Scrubber(self.clock, self.config, self.replicas, self.heard)
        for number in range(groups):
            group = f"orders/{number}"
            if group in self.store.journal.groups:
                log = open_or_refill(self.store, group)
            else:
                log = self.store.create_log(group, voters)
            chance = random.Random(1)
            replica = self.store.replica(log, RaftConfig(), chance, lambda _group, _message: None)
            self.replicas[group] = replica
            configure_log(log, self.settings)
            if voters == ALONE:
                replica.campaign()
            self.keeper.watch(replica, lambda: self.settings)
            self.store.flusher.kick()

    @property
    def replica(self) -> Replica:
        return self.replicas[GROUP]

    def write(
        self,
        key: str | None = None,
        value: str | None = "v" * 100,
        *,
        at_ms: int | None = None,
        group: GroupId = GROUP,
    ) -> Offset:
        data = None if key is None else key.encode()
        text = None if value is None else value.encode()
        timestamp_ms = self.clock.ms if at_ms is None else at_ms
        record = Record(offset=0, timestamp_ms=timestamp_ms, key=data, value=text)
        outcomes: list[Outcome] = []
        offset = self.replicas[group].propose(build_batch([record]), outcomes.append)
        self.store.flusher.kick()
        if outcomes == [Outcome.COMMITTED] and data is not None:
            self.acknowledged[data] = offset, text
        return offset

    def fill(self, *, at_ms: int | None = None) -> None:
        """Write thirty records, enough for several segments of 1 KiB."""
        for _ in range(30):
            self.write(at_ms=at_ms)

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.store.flusher.pass_time(self.clock.ms)
            self.store.flusher.settle()
            self.clocks.tick(self.others)
            self.keeper.tick()
            self.scrubber.tick()
            self.store.flusher.kick()

    def pass_time(self, ms: int, *, ticks: int = 40) -> None:
        """Advance the clock in a few jumps, with many ticks after each."""
        for _ in range(4):
            self.clock.ms += max(ms // 4, self.config.retry_interval_ms)
            self.tick(ticks)

    def run_until(self, is_done: Callable[[], bool]) -> None:
        for _ in range(TICKS_MAX):
            if is_done():
                return
            self.clock.ms += self.config.retry_interval_ms
            self.tick()
        raise AssertionError("the housekeeper does not get there")

    def records(self, group: GroupId = GROUP) -> list[Record]:
        """Every record that a consumer would read."""
        log = self.replicas[group].log
        found: list[Record] = []
        offset = log.start.first_offset
        while offset < log.end_offset:
            data = log.segments.read(offset, 1)
            if not data:
                break
            view = BatchView(data)
            found += read_records(view)
            offset = view.end_offset
        return found

    def offsets(self) -> list[Offset]:
        return [record.offset for record in self.records()]

    def files(self) -> list[str]:
        return [name for name in self.disk.list(GROUP) if name.endswith(".log")]

    def change(self, **settings: object) -> None:
        """Change the topic's settings and pass them to its logs."""
        self.settings = replace(self.settings, **settings)  # type: ignore[arg-type]
        for replica in self.replicas.values():
            configure_log(replica.log, self.settings)


def a_house(settings: TopicSettings = SETTINGS, *, seed: int = 1) -> House:
    house = House(settings, seed=seed)
    house.open()
    return house
