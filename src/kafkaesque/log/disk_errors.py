"""Translates disk errors into the log's own errors, in one place.

A full disk is a separate case because it passes: data on disk stays good, and appends work again
once there is room. The log cannot distinguish any other error from a failing disk.
"""

import errno
from types import TracebackType

from kafkaesque.errors import DiskFull, LogError
from kafkaesque.log.disk import File
from kafkaesque.log.errors import DiskFailed

_FULL = (errno.ENOSPC, errno.EDQUOT)


def translate(error: OSError, path: str) -> LogError:
    """Return the log's error for an error on `path`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return DiskFull(f"there is no room to write {path}: {reason}")
    return DiskFailed(f"{path} could not be read or written: {reason}")


def is_unreadable(error: OSError) -> bool:
    """Return whether a read failed because a sector is unreadable: the rest may be good."""
    return error.errno == errno.EIO


def read_if_readable(file: File, position: int, length: int) -> bytes:
    """Return the file's bytes, or nothing if one of its sectors is unreadable.

    For callers that check what they read and treat a short file as damaged.
    """
    try:
        return file.read(position, length)
    except OSError as error:
        if not is_unreadable(error):
            raise
        return b""


class disk_errors:  # noqa: N801 - reads as a statement: `with disk_errors(path):`
    """A context that turns every OSError about `path` into an error of the log."""

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
