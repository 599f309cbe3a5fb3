"""Segments against a list of batches, under random operations, restarts and crashes."""

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafkaesque.config import LogConfig
from kafkaesque.log.segments import Segments, SyncedPoint
from kafkaesque.record.view import BatchView
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, SimDisk
from kafkaesque.types import Offset, Term
from tests.log.logs import FOLDER, HandClock, a_batch, contents, sync, whole

CONFIG = LogConfig(
    segment_bytes_max=900,
    index_interval_bytes=100,
    index_sync_bytes=300,
    indexes_loaded_max=1,
)


class SegmentsAgainstAList(RuleBasedStateMachine):
    """The oracle is the list of batches, the synced point, and the terms by offset.

    It plays the part of the log's owner: a truncation raises the term, and the synced point
    is lowered before it.
    """

    @initialize(seed=st.integers(0, 1000), start=st.sampled_from([0, 7, 10_000]))
    def begin(self, seed: int, start: Offset) -> None:
        self.clock = HandClock()
        faults = DiskFaults(page_bytes=32)
        self.disk = SimDisk(random.Random(seed), faults=faults, clock=self.clock)
        self.log = Segments.create(self.disk, FOLDER, CONFIG, self.clock, start)
        self.batches: list[BatchView] = []
        self.start = start
        self.end = start
        self.term: Term = 1
        self.terms: list[tuple[Offset, Term]] = [(start, 1)]
        self.synced: SyncedPoint | None = None
        self.synced_count = 0

    @rule(
        count=st.integers(1, 4),
        hole=st.sampled_from([0, 0, 0, 0, 5, 3000]),
        fill=st.sampled_from([0, 20, 300, 800]),
        at_ms=st.integers(-1, 500),
    )
    def append(self, count: int, hole: int, fill: int, at_ms: int) -> None:
        base = self.end + hole
        view = a_batch(base, count, term=self.term, fill=fill, at_ms=at_ms)
        self.log.append(view.data)
        self.batches.append(view)
        self.end = view.end_offset

    @rule(fills=st.lists(st.sampled_from([0, 20, 300, 800]), min_size=2, max_size=6))
    def append_some(self, fills: list[int]) -> None:
        views = []
        for fill in fills:
            views.append(a_batch(self.end, 1, term=self.term, fill=fill, at_ms=self.end))
            self.end += 1
        self.batches += views
        left = [view.data for view in views]
        while left:  # at least one is written each time
            del left[: self.log.append(*left)]

    @rule(passed_ms=st.sampled_from([1, 1000, CONFIG.segment_age_ms_max + 1]))
    def time_passes(self, passed_ms: int) -> None:
        self.clock.ms += passed_ms

    @rule()
    def sync(self) -> None:
        self.synced = sync(self.log)
        self.synced_count = len(self.batches)

    @rule(chance=st.randoms(use_true_random=False))
    def truncate(self, chance: random.Random) -> None:
        committed = sum(view.end_offset <= self.start for view in self.batches)
        kept = chance.randint(committed, len(self.batches))
        if kept == len(self.batches):
            return
        offset = self.batches[kept].base_offset
        if kept < self.synced_count:
            self._lower_point(kept)
        self.log.truncate(offset)
        del self.batches[kept:]
        self.end = offset
        self.terms = [(at, term) for at, term in self.terms if at < offset]
        self.term += 1
        self.terms.append((offset, self.term))

    def _lower_point(self, kept: int) -> None:
        """Move the point down to a batch that stays, as the log's owner would on disk."""
        offset = self.batches[kept].base_offset
        info = [info for info in list(self.log.each_info()) if info.base <= offset][-1]
        inside = [view for view in self.batches[:kept] if view.base_offset >= info.base]
        self.synced = SyncedPoint(
            segment_base=info.base,
            position=sum(view.size for view in inside),
            end_offset=inside[-1].end_offset if inside else info.base,
        )
        self.synced_count = kept

    @rule(chance=st.randoms(use_true_random=False))
    def drop_before(self, chance: random.Random) -> None:
        # Only synced data is ever dropped, and the new start is on disk before.
        count = chance.randint(0, self.synced_count)
        if count:
            self.start = max(self.start, self.batches[count - 1].end_offset)
            self.log.drop_before(self.start)
            self._forget_dropped()

    def _forget_dropped(self) -> None:
        dropped = sum(view.base_offset < self.log.first_base for view in self.batches)
        del self.batches[:dropped]
        self.synced_count -= dropped

    @rule(timestamp_ms=st.integers(-2, 501))
    def find_time(self, timestamp_ms: int) -> None:
        first = next((v for v in self.batches if v.max_timestamp_ms >= timestamp_ms), None)
        found = self.log.find_time(timestamp_ms)
        assert (None if found is None else bytes(found)) == (first and bytes(first.data))

    @rule(chance=st.randoms(use_true_random=False), bytes_max=st.sampled_from([1, 300, 5000]))
    def read(self, chance: random.Random, bytes_max: int) -> None:
        offset = chance.randint(self.log.first_base, self.end)
        data = bytes(self.log.read(offset, bytes_max))
        wanted = [view for view in self.batches if view.end_offset > offset]
        base = self.log.batch_base(offset)
        if not wanted:
            assert (data, base) == (b"", self.end)
            return
        assert base == wanted[0].base_offset
        together = b"".join(whole(wanted))
        assert together.startswith(data)
        assert wanted[0].size <= len(data) <= max(wanted[0].size, bytes_max)

    @rule()
    def stop_and_start(self) -> None:
        self.synced = self.log.point()
        self.log.close()
        self.synced_count = len(self.batches)
        self._recover()
        assert self.log.end_offset == self.end

    @rule(policy=st.sampled_from(CrashPolicy))
    def crash(self, policy: CrashPolicy) -> None:
        self.disk.crash(policy)
        self._recover()
        found = [BatchView(data) for data in contents(self.log)]
        # Dropped data may be back: its removal need not be durable.
        needed = [view for view in self.batches if view.end_offset > self.start]
        seen = [view for view in found if view.end_offset > self.start]
        synced = self.batches[: self.synced_count]
        assert len(seen) >= sum(view.end_offset > self.start for view in synced)
        assert whole(seen) == whole(needed)[: len(seen)]
        self.batches = found
        assert self.log.end_offset <= self.end
        self.end = self.log.end_offset
        self.synced = self.log.point()
        self.synced_count = len(self.batches)

    def _recover(self) -> None:
        self.log = Segments.recover(
            self.disk,
            FOLDER,
            CONFIG,
            self.clock,
            start_offset=self.start,
            synced=self.synced,
            term_at=self._term_at,
        )
        self._forget_dropped()

    def _term_at(self, offset: Offset) -> Term:
        return next((term for at, term in reversed(self.terms) if at <= offset), 0)

    @invariant()
    def ends_agree(self) -> None:
        if hasattr(self, "log"):
            assert self.log.end_offset == self.end
            assert self.log.size_bytes == sum(view.size for view in self.batches)


TestSegmentsAgainstAList = SegmentsAgainstAList.TestCase
TestSegmentsAgainstAList.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None, database=None
)
