"""Group commit: one sync round at a time, shared by all groups of a node.

    idle --request--> a round is written --done--> idle, or the next round if more was requested

When a round is done, everything written before it started is durable; later writes wait for the
next round. The synced point of each group's segments is noted in the journal with a *later* round,
so that noting it costs no round of its own: with one that writes the journal anyway, or with the
first one after a tick. Most rounds sync segments alone (see `bench/syncing.py`); recovery reads a
little more in return.

If the disk has no room for the journal, the round does not start; it is retried later.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kafkaesque.callbacks import ignore
from kafkaesque.errors import DiskFull, LogError
from kafkaesque.log.disk import File
from kafkaesque.log.errors import DiskFailed
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
        """Handle a round that did not start: these files and folders are not synced."""
        ...

    def round_done(self) -> SyncedPoint | None:
        """Handle the end of a round: everything written before it started is durable.

        Returns where the segments ended when it started, unless they were cut meanwhile.
        """
        ...


class Flusher:
    """The rounds of one node. A failed sync is final: it is reported once, then all stops."""

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
        """Whether the last journal write found no room."""
        self._is_busy = False
        self._is_stopped = False
        self._is_wanted = False
        """Whether `on_wanted` was called since the last kick."""
        self.on_wanted: Callable[[], None] = ignore
        """Called once before the next kick, when there is work for it. A driver that does not kick
        after each event uses this to schedule a kick.
        """
        self.rounds = 0
        self.rounds_ms = 0
        self.now_ms: Callable[[], int] = _no_time
        """Clock for timing rounds; without it they are not timed."""
        self.on_round: Callable[[int], None] = ignore
        """Called with the duration of each round, in milliseconds."""

    def request(self, log: Flushed) -> None:
        """Ask that everything `log` has written so far becomes durable soon."""
        self._waiting[log.group] = log
        self._want()

    def after_next_round(self, callback: Callable[[], None]) -> None:
        """Call back when everything added to the journal so far is durable."""
        self._callbacks.append(callback)
        self._want()

    def before_next_round(self, callback: Callable[[], None]) -> None:
        """Call back at the driver's next kick, whether or not a round starts then."""
        self._reports.append(callback)
        self._want()

    def _want(self) -> None:
        if not self._is_wanted:
            self._is_wanted = True
            self.on_wanted()

    def request_within(self, log: Flushed, delay_ms: int) -> None:
        """Ask for a round for `log` that starts within this time; `pass_time` triggers it."""
        self._due.setdefault(log.group, (self._now_ms + delay_ms, log))

    def wait_for_room(self, callback: Callable[[], None]) -> None:
        """Call back after a little time, when the disk may have room again."""
        self._wanting_room.append(callback)

    @property
    def wants_room(self) -> bool:
        """Whether a log, or the journal, waits for room on the disk."""
        return self.is_full or bool(self._wanting_room)

    def pass_time(self, now_ms: int) -> None:
        """Set the monotonic time; work that is due or waits for room is tried at the next kick."""
        self._now_ms = now_ms
        if self._is_postponed:
            self._is_postponed = False
            self._want()
        self.want_notes()
        for log in [log for due_ms, log in self._due.values() if due_ms <= now_ms]:
            self.request(log)
        wanting_room, self._wanting_room = self._wanting_room, []
        for callback in wanting_room:
            callback()

    def want_notes(self) -> None:
        """Let the next round note the synced point of each group."""
        self._are_notes_due = True

    def settle(self) -> None:
        """Write the journal's pending notes although nothing waits for them.

        A driver calls this after a quiet period: otherwise the last synced point of a group at rest
        would never be noted, and damage before it could pass for a torn tail.
        """
        if self._journal.has_additions and not self._waiting:
            self._callbacks.append(ignore)  # nothing waits for this round
            self.want_notes()
            self.kick()

    def kick(self) -> None:
        """Start a round if one is wanted and none is under way; call it after each event."""
        self._is_wanted = False
        if self._is_stopped:
            return
        while self._reports:  # a report may add more reports
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
            took_ms = self.now_ms() - begun_ms
            self.rounds_ms += took_ms
            self.on_round(took_ms)
            if error is not None:
                self.fail(DiskFailed(f"a sync failed, so nothing more is written: {error}"))
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
        """Wait for time to pass: the disk had no room for this round's journal write."""
        self.is_full = self._is_postponed = True
        self._is_busy = False
        self.rounds -= 1
        self._callbacks = callbacks + self._callbacks
        for log in logs:
            self._waiting.setdefault(log.group, log)

    def fail(self, error: LogError) -> None:
        """Stop writing and report the error."""
        self.stop()
        self._failed(error)

    def stop(self) -> None:
        """Start no more rounds and ignore the result of the current one."""
        self._is_stopped = True


def _no_time() -> int:
    return 0
