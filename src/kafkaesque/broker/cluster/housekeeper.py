"""Maintains logs while the broker runs: removes expired and superseded records.

Every log is checked periodically, the longest waiting first. A check closes an old segment, deletes
segments by the topic's retention, and decides whether compaction is worthwhile; compaction passes
run one at a time, in the order in which they were found worthwhile. All of it happens in small
steps within ticks, and each tick gives it little time.

Only the leader deletes by age or size; its followers adopt its start. Nothing is deleted by age
while the wall clock is in doubt (`broker/cluster/wall_clocks.py`).

Kafka closes an old segment only at the next append. Here an idle log's segment is closed too, when
it is older than `segment.ms` or when all of it has expired: otherwise retention and compaction
could not act on a topic without writes.
"""

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import islice

from kafkaesque.ages import Ages
from kafkaesque.broker.cluster.wall_clocks import WallClocks
from kafkaesque.broker.replication.log_settings import retention_rules
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.config import HousekeepingConfig
from kafkaesque.errors import DiskFull, LogError
from kafkaesque.log.compaction import CompactionRules, compact
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.retention import age_ms, expired, is_too_old
from kafkaesque.log.steps import Step
from kafkaesque.record.view import BatchView
from kafkaesque.topic_settings import DEFAULTS, CleanupPolicy, TopicSettings
from kafkaesque.types import GroupId, Offset


class _Watched:
    """A log in the housekeeper's care, and its topic's current settings."""

    __slots__ = ("is_waiting_for_compaction", "remembered", "replica", "settings")

    def __init__(
        self,
        replica: Replica,
        settings: Callable[[], TopicSettings],
        remembered: Callable[[], Offset] | None,
    ) -> None:
        self.replica = replica
        self.settings = settings
        self.remembered = remembered
        self.is_waiting_for_compaction = False


class Housekeeper:
    """Maintains the logs of one broker. Closed logs are dropped automatically.

    `errors` holds the logs that could not be maintained, and why; those are not compacted again
    until the broker restarts. They are read and written as before: compaction may hit damage that
    no client has read yet.
    """

    def __init__(self, clock: Clock, config: HousekeepingConfig, clocks: WallClocks) -> None:
        self.clocks = clocks
        self.errors: dict[GroupId, LogError] = {}
        self.passes = 0
        """How many compaction passes have completed."""
        self._clock = clock
        self._config = config
        self._looks: list[tuple[int, int, _Watched]] = []
        """A heap: when to check, the order among equals, and the log."""
        self._serial = 0
        self._to_compact: deque[_Watched] = deque()
        self._work: Iterator[Step] | None = None

    def watch(
        self,
        replica: Replica,
        settings: Callable[[], TopicSettings],
        remembered: Callable[[], Offset] | None = None,
    ) -> None:
        """Maintain a replica's log from now on; `settings` is called at each check.

        `remembered` returns up to where the log's producers are saved: a batch that compaction
        drops beyond that would leave its producer unknown after a crash, and make a retry a new
        batch.
        """
        self._look_at(self._clock.monotonic_ms(), _Watched(replica, settings, remembered))

    def configure(self, config: HousekeepingConfig) -> None:
        """Apply new settings; checks due later than the new interval come sooner."""
        self._config = config
        last_ms = self._clock.monotonic_ms() + config.check_interval_ms
        self._looks = [(min(due, last_ms), serial, one) for due, serial, one in self._looks]
        heapify(self._looks)

    def tick(self) -> None:
        """Work for a short time."""
        config, clock = self._config, self._clock
        self._leave_damaged()
        until_ms = clock.monotonic_ms() + config.slice_ms
        for _ in range(config.steps_max):
            is_busy = self._look() or self._compact_a_little()
            if not is_busy or clock.monotonic_ms() >= until_ms:
                return

    def stop(self) -> None:
        """Give up current work; it leaves nothing behind."""
        self._work = None
        self._to_compact.clear()
        self._looks.clear()

    # ── checking ─────────────────────────────────────────────────────────────────────────────

    def _look_at(self, due_ms: int, watched: _Watched) -> None:
        self._serial += 1
        heappush(self._looks, (due_ms, self._serial, watched))

    def _look(self) -> bool:
        """Check one log, if one is due."""
        now_ms = self._clock.monotonic_ms()
        if not self._looks or self._looks[0][0] > now_ms:
            return False
        watched = heappop(self._looks)[2]
        if watched.replica.log.is_closed:
            return True
        is_begun = False
        try:
            is_begun = self._look_after(watched)
        except DiskFull:
            pass  # nothing was changed, and there may be room next time
        except LogError as error:
            self._failed(watched.replica, error)
        config = self._config
        delay_ms = config.retry_interval_ms if is_begun else config.check_interval_ms
        self._look_at(now_ms + delay_ms, watched)
        return True

    def _look_after(self, watched: _Watched) -> bool:
        """Do what is due; return whether work was started that another check completes."""
        settings = watched.settings()
        log = watched.replica.log
        is_begun = log.drop_trimmed()
        deletes = settings.cleanup_policy is not CleanupPolicy.COMPACT
        if log.segments.is_old or (deletes and self._has_expired_wholly(watched, settings)):
            log.roll()
            is_begun = True
        if deletes and watched.replica.is_serving:
            is_begun = self._delete(watched, settings) or is_begun
        if settings.cleanup_policy is not CleanupPolicy.DELETE:
            is_begun = self._consider(watched) or is_begun
        return is_begun

    def _has_expired_wholly(self, watched: _Watched, settings: TopicSettings) -> bool:
        """Return whether even the active segment holds nothing to keep."""
        log = watched.replica.log
        active = log.segments.active_info()
        if active.bytes == 0:
            return False
        if not watched.replica.is_serving:
            return log.start.first_offset >= active.end
        return is_too_old(active, self.clocks.ages, retention_rules(settings))

    def _delete(self, watched: _Watched, settings: TopicSettings) -> bool:
        log = watched.replica.log
        start = expired(
            islice(log.segments.each_info(), self._config.segments_per_look),
            size_bytes=log.segments.size_bytes,
            ages=self.clocks.ages,
            rules=retention_rules(settings),
            below=watched.replica.settled_offset,
        )
        if start is None or start <= log.start.first_offset:
            return False
        log.trim(start)
        return True

    # ── compacting ───────────────────────────────────────────────────────────────────────────

    def _consider(self, watched: _Watched) -> bool:
        """Queue the log for compaction if enough of it is new to be worth a pass."""
        replica = watched.replica
        if watched.is_waiting_for_compaction or replica.group in self.errors:
            return False
        if replica.damage.found:  # wait until it is mended
            return False
        replica.log.allow_holes()
        dirty, clean = replica.log.segments.bytes_to_compact(self._compactable_below(watched))
        share = watched.settings().min_cleanable_dirty_ratio
        if dirty and (dirty >= share * (dirty + clean) or self._has_waited_long(watched)):
            watched.is_waiting_for_compaction = True
            self._to_compact.append(watched)
        return replica.log.note_point()

    def _has_waited_long(self, watched: _Watched) -> bool:
        """Return whether the first uncompacted record is older than allowed."""
        lag_ms = watched.settings().max_compaction_lag_ms
        if lag_ms == DEFAULTS.max_compaction_lag_ms:
            return False
        segments = watched.replica.log.segments
        below = self._compactable_below(watched)
        dirty = next((i for i in segments.each_info() if i.end > segments.compacted_to), None)
        if dirty is None or dirty.is_active or dirty.end > below:
            return False
        # Too early costs a pass but no record, so a doubtful clock will do.
        ages = self.clocks.ages or Ages(now_ms=self._clock.now_ms())
        first_ms = BatchView(segments.read(dirty.base, 1)).base_timestamp_ms
        is_plausible = 0 <= first_ms <= ages.now_ms
        return (ages.of(first_ms) if is_plausible else age_ms(dirty, ages)) >= lag_ms

    def _compactable_below(self, watched: _Watched) -> Offset:
        """Return up to where the log is committed, synced, and old enough to be compacted."""
        log = watched.replica.log
        below = min(watched.replica.settled_offset, log.compactable_below)
        if watched.remembered is not None:
            below = min(below, watched.remembered())
        lag_ms = watched.settings().min_compaction_lag_ms
        if lag_ms == 0:
            return below
        ages = self.clocks.ages
        if ages is None:
            return log.start.first_offset
        is_append_time = watched.settings().is_append_time
        for info in log.segments.each_info():
            if age_ms(info, ages, is_append_time=is_append_time) < lag_ms:
                return min(below, info.base)
        return below

    def _compact_a_little(self) -> bool:
        """Do a step of the current pass, or start the next; return whether it can continue now."""
        if not self._to_compact:
            return False
        watched = self._to_compact[0]
        if self._work is None:
            self._work = self._begin(watched)
        step: Step | None = None
        try:
            if not watched.replica.log.is_closed:
                step = next(self._work, None)
                self.passes += step is None
        except DiskFull:
            pass  # the next check finds it worthwhile again
        except LogError as error:
            self._failed(watched.replica, error)
        if step is None:
            self._work = None
            self._to_compact.popleft().is_waiting_for_compaction = False
        return step is not Step.WAITED

    def _failed(self, replica: Replica, error: LogError) -> None:
        self.errors[replica.group] = error
        if isinstance(error, CorruptLog):
            replica.damaged(error)

    def _leave_damaged(self) -> None:
        """Give up a pass over a damaged log: its segments are about to be replaced."""
        if self._to_compact and self._to_compact[0].replica.damage.found:
            self._work = None
            self._to_compact.popleft().is_waiting_for_compaction = False

    def _begin(self, watched: _Watched) -> Iterator[Step]:
        return compact(
            watched.replica.log.segments,
            below=self._compactable_below(watched),
            ages=self.clocks.ages,
            rules=CompactionRules(delete_retention_ms=watched.settings().delete_retention_ms),
        )
