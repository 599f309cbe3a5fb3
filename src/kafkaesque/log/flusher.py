"""Group commit: one round of syncing at a time, for all groups of a node together.

    idle --request--> a round is written --done--> idle, or the next round if more was requested

Everything that was written before a round began is durable when it is done; what comes meanwhile
waits for the next one. How far each group's segments are durable is noted in the journal with the
*next* round, so that noting it costs no sync of its own; recovery reads a little more for it.
"""

from collections.abc import Callable
from typing import Protocol

from kafkaesque.errors import DiskFailed, LogError
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

    def settle(self) -> None:
        """Write what the journal has to note although nobody waits for it.

        A driver calls this when it has been quiet for a while: else the last synced point of a
        group at rest would never be noted, and damage before it could pass for a torn tail.
        """
        if self._journal.has_additions and not self._waiting:
            self._callbacks.append(_nothing)
            self.kick()

    def kick(self) -> None:
        """Begin a round if one is wanted and none is under way; the driver calls this per event."""
        if self._is_busy or self._is_stopped or not (self._waiting or self._callbacks):
            return
        logs, self._waiting = list(self._waiting.values()), {}
        callbacks, self._callbacks = self._callbacks, []
        files: list[File] = []
        folders: list[str] = []
        try:
            for log in logs:
                log_files, log_folders = log.round_begins()
                files += log_files
                folders += log_folders
        except LogError as error:
            self._fail(error)
            return
        self._is_busy = True
        self.rounds += 1
        begun_ms = self.now_ms()

        def done(error: OSError | None) -> None:
            if self._is_stopped:
                return
            self.rounds_ms += self.now_ms() - begun_ms
            if error is not None:
                self._fail(DiskFailed(f"a sync failed, nothing more is written: {error}"))
                return
            for log in logs:
                point = log.round_done()
                if point is not None:
                    self._journal.add(synced_record(log.group, point))
            for callback in callbacks:
                callback()
            self._is_busy = False
            self.kick()

        try:
            self._journal.write_round(files, folders, done)
        except LogError as error:
            self._fail(error)

    def _fail(self, error: LogError) -> None:
        self.stop()
        self._failed(error)

    def stop(self) -> None:
        """Begin no more rounds and let the one under way end unheard."""
        self._is_stopped = True


def _nothing() -> None:
    """Nobody waits for this round."""


def _no_time() -> int:
    return 0
