"""What the disk says, turned into the log's own errors: once, here.

A full disk is told apart because it passes: what is on disk stays good, and appends work again
when there is room. Anything else the log cannot tell from a dying disk.
"""

import errno
from types import TracebackType

from kafkaesque.errors import DiskFailed, DiskFull, LogError
from kafkaesque.log.disk import File

_FULL = (errno.ENOSPC, errno.EDQUOT)


def translate(error: OSError, path: str) -> LogError:
    """Return the log's error for what happened to `path`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return DiskFull(f"there is no room to write {path}: {reason}")
    return DiskFailed(f"{path} could not be read or written: {reason}")


def is_unreadable(error: OSError) -> bool:
    """Tell whether a read failed because the disk has lost a sector: the rest may be good."""
    return error.errno == errno.EIO


def read_if_readable(file: File, position: int, length: int) -> bytes:
    """Return what is in a file, and nothing if a sector of it cannot be read.

    For those who check what they read, and take a file that is too short for a damaged one.
    """
    try:
        return file.read(position, length)
    except OSError as error:
        if not is_unreadable(error):
            raise
        return b""


class disk_errors:  # noqa: N801 - reads as a statement: `with disk_errors(path):`
    """A context in which every OSError about `path` becomes an error of the log."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise translate(error, self._path) from error
