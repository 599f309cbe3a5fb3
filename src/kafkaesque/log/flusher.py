"""Group commit: one round of syncing at a time, for all groups of a node together.

    idle --request--> a round is written --done--> idle, or the next round if more was requested

Everything that was written before a round began is durable when it is done; what comes meanwhile
waits for the next one. How far each group's segments are durable is noted in the journal with a
*later* round, so that noting it costs no round of its own: with one that writes the journal anyway,
or the first one after a tick. Most rounds sync segments alone, see `bench/syncing.py`; recovery
reads a little more for it.

A round for which the journal finds no room does not begin; it is tried again as time passes.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kafkaesque.errors import DiskFailed, DiskFull, LogError
from kafkaesque.log.disk import File
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import synced_record
from kafkaesque.log.segments import SyncedPoint
from kafkaesque.types import GroupId


class Flushed(Protocol):
    """A log that takes part in rounds."""

    group: GroupId

    def round_begins(self) -> tuple[list[File], list[str]]:
        """Return the files and folders to sync for this log."""
        ...

    def round_postponed(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """Learn that the round did not begin, and that these are not synced."""
        ...

    def round_done(self) -> SyncedPoint | None:
        """Learn that everything written before the round began is durable.

        Returns where the segments ended when it began, unless they were cut meanwhile.
        """
        ...


class Flusher:
    """The rounds of one node. A failed sync is final: it is reported once and nothing goes on."""

    def __init__(self, journal: Journal, failed: Callable[[LogError], None]) -> None:
        self._journal = journal
        self._failed = failed
        self._waiting: dict[GroupId, Flushed] = {}
        self._callbacks: list[Callable[[], None]] = []
        self._reports: list[Callable[[], None]] = []
        self._due: dict[GroupId, tuple[int, Flushed]] = {}
        self._now_ms = 0
        self._wanting_room: list[Callable[[], None]] = []
        self._is_postponed = False
        self._are_notes_due = False
        self.is_full = False
        """Whether the journal found no room when it was last written."""
        self._is_busy = False
        self._is_stopped = False
        self.rounds = 0
        self.rounds_ms = 0
        self.now_ms: Callable[[], int] = _no_time
        """Tells the time that rounds take; they are not timed unless somebody sets it."""

    def request(self, log: Flushed) -> None:
        """Ask that what `log` has written so far becomes durable soon."""
        self._waiting[log.group] = log

    def after_next_round(self, callback: Callable[[], None]) -> None:
        """Call back when everything added to the journal so far is durable."""
        self._callbacks.append(callback)

    def before_next_round(self, callback: Callable[[], None]) -> None:
        """Call back when the driver next kicks, whether a round begins then or not."""
        self._reports.append(callback)

    def request_within(self, log: Flushed, delay_ms: int) -> None:
        """Ask for a round for `log` that begins after this time at the latest, by `pass_time`."""
        self._due.setdefault(log.group, (self._now_ms + delay_ms, log))

    def wait_for_room(self, callback: Callable[[], None]) -> None:
        """Call back when a little time has passed and the disk may have room again."""
        self._wanting_room.append(callback)

    def pass_time(self, now_ms: int) -> None:
        """Learn the monotonic time; what is due, or waits for room, is tried at the next kick."""
        self._now_ms = now_ms
        self._is_postponed = False
        self.want_notes()
        for log in [log for due_ms, log in self._due.values() if due_ms <= now_ms]:
            self.request(log)
        wanting_room, self._wanting_room = self._wanting_room, []
        for callback in wanting_room:
            callback()

    def want_notes(self) -> None:
        """Let the next round note how far each group's segments are durable."""
        self._are_notes_due = True

    def settle(self) -> None:
        """Write what the journal has to note although nobody waits for it.

        A driver calls this when it has been quiet for a while: else the last synced point of a
        group at rest would never be noted, and damage before it could pass for a torn tail.
        """
        if self._journal.has_additions and not self._waiting:
            self._callbacks.append(_nothing)
            self.want_notes()
            self.kick()

    def kick(self) -> None:
        """Begin a round if one is wanted and none is under way; the driver calls this per event."""
        if self._is_stopped:
            return
        while self._reports:  # what was gathered is written by one, and reported by another
            reports, self._reports = self._reports, []
            for report in reports:
                report()
        is_wanted = bool(self._waiting or self._callbacks)
        if is_wanted and not (self._is_busy or self._is_postponed or self._is_stopped):
            self._begin_round()

    def _begin_round(self) -> None:
        logs, self._waiting = list(self._waiting.values()), {}
        callbacks, self._callbacks = self._callbacks, []
        for log in logs:
            self._due.pop(log.group, None)
        if self._are_notes_due:
            self._are_notes_due = False
            self._journal.add_notes()
        try:
            dirty = [log.round_begins() for log in logs]
        except LogError as error:
            self.fail(error)
            return
        files = [file for log_files, _ in dirty for file in log_files]
        folders = [folder for _, log_folders in dirty for folder in log_folders]
        begun_ms = self.now_ms()

        def done(error: OSError | None) -> None:
            if self._is_stopped:
                return
            self.rounds_ms += self.now_ms() - begun_ms
            if error is not None:
                self.fail(DiskFailed(f"a sync failed, nothing more is written: {error}"))
                return
            for log in logs:
                point = log.round_done()
                if point is not None:
                    self._journal.note(synced_record(log.group, point))
            for callback in callbacks:
                callback()
            self._is_busy = False
            self.kick()

        self._is_busy = True
        self.is_full = False
        self.rounds += 1
        try:
            self._journal.write_round(files, folders, done)
        except DiskFull:
            for log, (log_files, log_folders) in zip(logs, dirty, strict=True):
                log.round_postponed(log_files, log_folders)
            self._postpone(logs, callbacks)
        except LogError as error:
            self.fail(error)

    def _postpone(self, logs: list[Flushed], callbacks: list[Callable[[], None]]) -> None:
        """Wait for time to pass: the journal found no room for this round."""
        self.is_full = self._is_postponed = True
        self._is_busy = False
        self.rounds -= 1
        self._callbacks = callbacks + self._callbacks
        for log in logs:
            self._waiting.setdefault(log.group, log)

    def fail(self, error: LogError) -> None:
        """Write nothing more, and say why."""
        self.stop()
        self._failed(error)

    def stop(self) -> None:
        """Begin no more rounds and let the one under way end unheard."""
        self._is_stopped = True


def _nothing() -> None:
    """Nobody waits for this round."""


def _no_time() -> int:
    return 0
