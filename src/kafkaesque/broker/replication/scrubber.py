"""Reads closed segments slowly in the background, to find damage that no client reads.

A pass reads all logs in turn, first the segments without a seal: an intact one gets its seal, as
after a crash or an upgrade. Each tick takes little time, and reads no more than the rate allows, so
that consumers have the disk.
"""

from collections.abc import Callable, Iterator, Mapping

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.config import HousekeepingConfig
from kafkaesque.errors import LogError
from kafkaesque.events import Events, ScrubFailed
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.segment import Segment
from kafkaesque.log.segment_check import BadPlace, check_segment
from kafkaesque.types import GroupId, Offset, Term


class Scrubber:
    """Reads through the logs of one broker, again and again."""

    def __init__(
        self,
        clock: Clock,
        config: HousekeepingConfig,
        replicas: Mapping[GroupId, Replica],
        events: Events,
    ) -> None:
        self.bytes_read = 0
        self.passes = 0
        """How many passes over all logs have completed."""
        self.passed_ms = 0
        """When the last one completed, by the wall clock; 0 if none did in this run."""
        self._clock = clock
        self._config = config
        self._replicas = replicas
        self._events = events
        self._pass: Iterator[Iterator[int]] | None = None
        self._work: Iterator[int] | None = None
        """The reader of the pass's current log."""
        self._pass_at_ms = clock.monotonic_ms()
        self._earned_ms = clock.monotonic_ms()
        self._allowance = 0

    def configure(self, config: HousekeepingConfig) -> None:
        """Apply new settings."""
        now_ms = self._clock.monotonic_ms()
        if self._config.scrub_bytes_per_second == 0:
            self._earned_ms = now_ms  # nothing is earned while it is off
        self._pass_at_ms = min(self._pass_at_ms, now_ms + config.check_interval_ms)
        self._config = config

    def tick(self) -> None:
        """Read a little, if it is time."""
        config, clock = self._config, self._clock
        rate, now_ms = config.scrub_bytes_per_second, clock.monotonic_ms()
        if rate == 0:
            return
        # An allowance that goes unused for a second is not saved up.
        self._allowance = min(self._allowance + rate * (now_ms - self._earned_ms) // 1000, rate)
        self._earned_ms = now_ms
        until_ms = now_ms + config.slice_ms
        for _ in range(config.steps_max):
            if self._allowance <= 0 or not self._step():
                return
            if clock.monotonic_ms() >= until_ms:
                return

    def stop(self) -> None:
        """Give up current work."""
        self._pass = self._work = None
        self._replicas = {}

    def _step(self) -> bool:
        """Read one piece; returns whether there is more to do now."""
        if self._pass is None:
            now_ms = self._clock.monotonic_ms()
            if now_ms < self._pass_at_ms:
                return False
            self._pass_at_ms = now_ms + self._config.check_interval_ms
            self._pass = self._logs()
        work = self._work or next(self._pass, None)
        self._work = None  # whatever ends the reading of one log, the next is read
        if work is None:
            self._pass = None
            self.passes += 1
            self.passed_ms = self._clock.now_ms()
            return False
        count = next(work, None)
        if count is not None:
            self._work = work
            self.bytes_read += count
            self._allowance -= count
        return True

    def _logs(self) -> Iterator[Iterator[int]]:
        """Yield a reader for each log in turn: a pass."""
        for is_first_lap in (True, False):
            for group in list(self._replicas):
                replica = self._replicas.get(group)
                if replica is not None:
                    yield self._read_log(replica, is_first_lap=is_first_lap)

    def _read_log(self, replica: Replica, *, is_first_lap: bool) -> Iterator[int]:
        if replica.log.is_closed:
            return
        segments = replica.log.segments
        try:
            for segment in segments.closed():
                if not (is_first_lap and segments.seals.of(segment.base)):
                    yield from self._read(replica, segment)
            if not is_first_lap and not replica.log.is_closed:
                yield from self._read_active(replica)
        except CorruptLog as error:
            replica.damaged(error, error.offset)
        except LogError as error:  # the next pass retries
            self._events.tell(ScrubFailed(partition=replica.group, reason=str(error)))

    def _read(self, replica: Replica, segment: Segment) -> Iterator[int]:
        """Read a whole segment, while it exists and is not rewritten."""
        partition_log, segments, file = replica.log, replica.log.segments, segment.file

        def is_same() -> bool:
            is_there = (
                not partition_log.is_closed and segments.holds(segment) and segment.file is file
            )
            return is_there and segment.damage is None

        if not is_same():
            return
        steps = check_segment(
            file,
            segment.size,
            base=segment.base,
            end=segments.end_of(segment),
            term_at=_terms(replica),
            has_holes=partition_log.has_holes,
            seals=segments.seals.of(segment.base),
        )
        while is_same():  # terminates with the segment
            try:
                yield next(steps)
            except StopIteration as end:
                if isinstance(end.value, BadPlace):
                    self._found(replica, segment, end.value)
                elif not segments.seals.of(segment.base):
                    partition_log.seal(end.value)
                return

    def _read_active(self, replica: Replica) -> Iterator[int]:
        """Read the settled part of the active segment: it is never cut.

        Otherwise a follower would not read it until it is closed or the follower leads.
        """
        partition_log, end = replica.log, replica.settled_offset
        if end <= max(partition_log.segments.active_base, partition_log.start.offset):
            return
        segment, _ = partition_log.segments.span(end - 1)
        if segment.is_closed or replica.error is not None:
            return
        size = segment.boundary(end)
        steps = check_segment(
            segment.file,
            size,
            base=segment.base,
            end=end,
            term_at=_terms(replica),
            has_holes=partition_log.has_holes,
            seals=(),
        )

        def is_same() -> bool:
            segments = partition_log.segments
            is_last = not partition_log.is_closed and segments.active_base == segment.base
            return is_last and segments.span(segment.base)[0] is segment

        while is_same():  # terminates with the segment
            try:
                yield next(steps)
            except StopIteration as stop:
                if isinstance(stop.value, BadPlace):
                    bad = stop.value
                    found = CorruptLog(segment.path, bad.position, bad.reason, offset=bad.offset)
                    replica.damaged(found, bad.offset)
                return

    def _found(self, replica: Replica, segment: Segment, bad: BadPlace) -> None:
        error = CorruptLog(segment.path, bad.position, bad.reason, offset=bad.offset)
        replica.damaged(error, bad.offset)
        if replica.log.has_holes:  # otherwise any reader notices it
            replica.log.segments.doubt(bad.offset, bad.reason)


def _terms(replica: Replica) -> Callable[[Offset], Term | None]:
    kept = replica.log
    return lambda at: None if at < kept.start.offset else kept.term_at(kept.index_at(at))
