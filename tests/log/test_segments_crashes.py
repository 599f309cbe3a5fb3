"""The power fails inside every single disk operation of a scripted run, in every possible way.

The owner of a log records the synced point and the start elsewhere; here the script's own
variables play that part, changed in the order that the log asks for.
"""

import random

import pytest

from kafkaesque.ages import Ages
from kafkaesque.config import LogConfig
from kafkaesque.log.compaction import CompactionRules, compact
from kafkaesque.log.segments import Segments, SyncedPoint
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, PowerLost, SimDisk
from kafkaesque.types import Offset, Term
from tests.log.logs import FOLDER, START_MS, HandClock, contents

CONFIG = LogConfig(
    segment_bytes_max=500, index_interval_bytes=100, index_sync_bytes=200, indexes_loaded_max=1
)
RULES = CompactionRules(delete_retention_ms=0)


class Scenario:
    """A log's run up to the crash, and what must be true after it."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.clock = HandClock()
        self.written: dict[Offset, Record] = {}
        self.synced: SyncedPoint | None = None
        self.start: Offset = 0
        self.terms: list[tuple[Offset, Term]] = [(0, 1)]
        self.compacted_below: Offset = 0

    def run(self) -> None:
        self.log = Segments.create(self.disk, FOLDER, CONFIG, self.clock, 0)
        for number in range(14):
            self.append(f"k{number % 4}")
            if number % 4 == 3:
                self.sync()
        self.truncate(list(self.log.each_info())[1].end - 2)
        for number in range(6):
            self.append(f"k{number % 3}")
        self.sync()
        for number in range(4):
            self.append(f"k{number}", hole=number % 2)
        self.sync()
        self.compact()
        self.append("k1")
        self.drop(list(self.log.each_info())[1].base)
        self.sync()
        self.append("k2")
        self.log.close()
        self.recover()
        self.append("k3")

    def append(self, key: str, hole: int = 0) -> None:
        base = self.log.end_offset + hole
        records = [
            Record(
                offset=offset,
                timestamp_ms=START_MS + offset,
                key=key.encode(),
                value=b"%d in %d" % (offset, self.terms[-1][1]) + b"." * 30,
            )
            for offset in (base, base + 1)
        ]
        # Writes in progress when the power failed may be there or not.
        self.written |= {record.offset: record for record in records}
        batch = build_batch(records, base_offset=base, term=self.terms[-1][1])
        self.log.append(batch)

    def sync(self) -> None:
        point = self.log.point()
        self.disk.sync_now(*self.log.take_dirty())
        self.log.synced()
        self.synced = point

    def truncate(self, offset: Offset) -> None:
        offset = self.log.batch_base(offset)
        info = next(info for info in list(self.log.each_info()) if info.end >= offset)
        views = [BatchView(data) for data in contents(self.log)]
        kept = [view.size for view in views if info.base <= view.base_offset < offset]
        self.synced = SyncedPoint(segment_base=info.base, position=sum(kept), end_offset=offset)
        self.terms.append((offset, self.terms[-1][1] + 1))
        self.written = {at: record for at, record in self.written.items() if at < offset}
        self.log.truncate(offset)

    def compact(self) -> None:
        assert self.synced is not None
        below = self.synced.segment_base
        self.compacted_below = below
        for _ in compact(self.log, below=below, ages=Ages(now_ms=START_MS), rules=RULES):
            pass

    def drop(self, offset: Offset) -> None:
        self.start = offset
        self.log.drop_before(offset)

    def recover(self) -> None:
        self.log = Segments.recover(
            self.disk,
            FOLDER,
            CONFIG,
            self.clock,
            start_offset=self.start,
            synced=self.synced,
            term_at=lambda offset: next(t for at, t in reversed(self.terms) if at <= offset),
        )

    def check(self) -> None:
        assert not self.log.found, "a crash does not count as damage"
        found = {
            record.offset: record
            for data in contents(self.log)
            for record in read_records(BatchView(data))
            if record.offset >= self.start
        }
        assert found.items() <= self.written.items(), "only written batches are there"
        end = self.log.end_offset
        synced_end = 0 if self.synced is None else self.synced.end_offset
        assert end >= max(synced_end, self.start), "synced batches are there"
        last: dict[bytes | None, Offset] = {}
        for offset, record in self.written.items():
            if offset < self.compacted_below:
                last[record.key] = offset
        for offset, record in self.written.items():
            is_superseded = last.get(record.key, offset) > offset
            if self.start <= offset < end and not is_superseded:
                assert offset in found, "the only gaps are those of compaction"
        for record in found.values():
            batch = self.log.find_time(record.timestamp_ms)
            assert batch is not None
            view = BatchView(batch)
            assert view.base_offset <= record.offset <= view.last_offset


def a_disk(seed: int) -> SimDisk:
    return SimDisk(random.Random(seed), faults=DiskFaults(page_bytes=32))


def operations() -> int:
    disk = a_disk(0)
    Scenario(disk).run()
    return disk.operations


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("policy", CrashPolicy)
def test_a_crash_inside_any_operation_loses_nothing_that_was_synced(policy: CrashPolicy) -> None:
    for number in range(1, operations() + 1):
        for seed in range(4 if policy is CrashPolicy.TORN else 1):
            disk = a_disk(seed)
            disk.crash_after = number
            scenario = Scenario(disk)
            with pytest.raises(PowerLost):
                scenario.run()
            disk.crash(policy)
            scenario.recover()
            scenario.check()
            first = contents(scenario.log), scenario.log.end_offset
            disk.crash(policy)
            scenario.recover()
            assert (contents(scenario.log), scenario.log.end_offset) == first
            scenario.append("k9")
            scenario.sync()
            scenario.check()


def test_a_crash_inside_recovery_leaves_a_log_that_recovers() -> None:
    count = operations()
    for number in range(5, count, 7):
        for second in range(1, 8):
            disk = a_disk(number)
            disk.crash_after = number
            scenario = Scenario(disk)
            with pytest.raises(PowerLost):
                scenario.run()
            disk.crash(CrashPolicy.TORN)
            disk.crash_after = disk.operations + second
            try:
                scenario.recover()
            except PowerLost:
                disk.crash(CrashPolicy.TORN)
                scenario.recover()
            disk.crash_after = None
            scenario.check()


def test_without_a_crash_the_script_keeps_its_own_promises() -> None:
    scenario = Scenario(a_disk(0))
    scenario.run()
    scenario.check()
    assert len(list(scenario.log.each_info())) > 2
    assert 0 < scenario.start < scenario.compacted_below
