"""Reads closed segments through while the broker runs, slowly: damage that nobody reads is found.

A pass goes through all logs in turn, first to those segments that have no seal: one that is whole
gets its seal, as after a crash or an upgrade. Each tick takes a little time, and no more is read
than the rate allows, so that consumers have the disk.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

from kafkaesque.broker.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.config import HousekeepingConfig
from kafkaesque.errors import CorruptLog, LogError
from kafkaesque.log.segment import Segment
from kafkaesque.log.segment_check import BadPlace, check_segment
from kafkaesque.types import GroupId, Offset, Term

log = logging.getLogger(__name__)


class Scrubber:
    """Goes through the logs of one broker, again and again."""

    def __init__(
        self, clock: Clock, config: HousekeepingConfig, replicas: Mapping[GroupId, Replica]
    ) -> None:
        self.bytes_read = 0
        self.passes = 0
        """How often all logs were gone through."""
        self.passed_ms = 0
        """When that was last, by the wall clock; 0 if never in this run."""
        self._clock = clock
        self._config = config
        self._replicas = replicas
        self._pass: Iterator[Iterator[int]] | None = None
        self._work: Iterator[int] | None = None
        """What reads the log that the pass has come to."""
        self._pass_at_ms = clock.monotonic_ms()
        self._earned_ms = clock.monotonic_ms()
        self._allowance = 0

    def configure(self, config: HousekeepingConfig) -> None:
        """Let other settings hold."""
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
        # What was not used within a second is not saved up.
        self._allowance = min(self._allowance + rate * (now_ms - self._earned_ms) // 1000, rate)
        self._earned_ms = now_ms
        until_ms = now_ms + config.slice_ms
        for _ in range(config.steps_max):
            if self._allowance <= 0 or not self._step():
                return
            if clock.monotonic_ms() >= until_ms:
                return

    def stop(self) -> None:
        """Give up what is under way."""
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
        """Yield what reads each log through, in turn: a pass."""
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
        except LogError as error:  # the next pass tries again
            log.warning("scrub_failed partition=%s reason=%s", replica.group, error)

    def _read(self, replica: Replica, segment: Segment) -> Iterator[int]:
        """Read a segment through, as long as it is there and is not rewritten."""
        of, segments, file = replica.log, replica.log.segments, segment.file

        def is_same() -> bool:
            is_there = not of.is_closed and segments.holds(segment) and segment.file is file
            return is_there and segment.damage is None

        if not is_same():
            return
        steps = check_segment(
            file,
            segment.size,
            base=segment.base,
            end=segments.end_of(segment),
            term_at=_terms(replica),
            has_holes=of.has_holes,
            seals=segments.seals.of(segment.base),
        )
        while is_same():  # ends with the segment
            try:
                yield next(steps)
            except StopIteration as end:
                if isinstance(end.value, BadPlace):
                    self._found(replica, segment, end.value)
                elif not segments.seals.of(segment.base):
                    of.seal(end.value)
                return

    def _read_active(self, replica: Replica) -> Iterator[int]:
        """Read what is settled of the segment that is appended to: nothing of it is cut any more.

        A follower would else not look at it before it is closed, or leads.
        """
        of, end = replica.log, replica.settled_offset
        if end <= max(of.segments.active_base, of.start.offset):
            return
        segment, _ = of.segments.span(end - 1)
        if segment.is_closed or replica.error is not None:
            return
        size = segment.boundary(end)
        steps = check_segment(
            segment.file,
            size,
            base=segment.base,
            end=end,
            term_at=_terms(replica),
            has_holes=of.has_holes,
            seals=(),
        )

        def is_same() -> bool:
            segments = of.segments
            is_last = not of.is_closed and segments.active_base == segment.base
            return is_last and segments.span(segment.base)[0] is segment

        while is_same():  # ends with the segment
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
        if replica.log.has_holes:  # else whoever reads it sees it
            replica.log.segments.doubt(bad.offset, bad.reason)


def _terms(replica: Replica) -> Callable[[Offset], Term | None]:
    of = replica.log
    return lambda at: None if at < of.start.offset else of.term_at(of.index_at(at))
