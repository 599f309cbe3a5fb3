"""What goes wrong with a log on disk; `kafkaesque.errors` has what machines meet as well."""

from kafkaesque.errors import LogError
from kafkaesque.types import Offset


class OffsetOutOfRange(LogError):
    """The offset is before the first record kept or after the last one written."""

    def __init__(self, offset: Offset, start: Offset, end: Offset) -> None:
        super().__init__(f"offset {offset} is outside the log, which holds [{start}, {end})")
        self.offset = offset
        self.start = start
        self.end = end


class CorruptLog(LogError):
    """Synced bytes are not what was written; they are never cut, but refilled or repaired."""

    def __init__(self, path: str, position: int, reason: str, *, offset: int | None = None) -> None:
        super().__init__(f"{path} is damaged at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason
        self.offset = offset
        """At or before the first damaged record; None if not known."""


class RepairFailed(LogError):
    """A damaged segment could not be repaired this time; nothing was changed."""


class ForeignFile(LogError):
    """Not a Kafkaesque file, or not of the kind that its name says."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is not a Kafkaesque file: {reason}")
        self.path = path


class DiskFailed(LogError):
    """A write or a sync failed; the replica stops, because the kernel may have dropped the data."""
