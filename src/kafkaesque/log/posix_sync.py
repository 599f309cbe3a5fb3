"""Makes files and folders durable, by the means of each supported system."""

import ctypes
import errno
import fcntl
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

SYNCFS_REPORTS_ERRORS_SINCE = (5, 8)
"""Before this Linux, syncfs did not report failed writes: syncfs(2), section Versions."""

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS fsync leaves the data in the drive's cache; this command does not: fsync(2) there."""


def sync_file(descriptor: int) -> None:
    """Make a file's bytes and size durable."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    else:
        os.fdatasync(descriptor)


def sync_folder(location: str) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_durable_folder(folder: Path) -> None:
    """Create a folder and its missing parents, each durable; does nothing if it exists."""
    if not folder.is_dir():
        make_durable_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(str(folder.parent))


def load_syncfs() -> Callable[[int], None] | None:
    """Return a function that syncs the whole file system of a descriptor, if available.

    The function raises OSError for every write-back error on that file system since the descriptor
    was opened or last synced.
    """
    if sys.platform != "linux":
        return None
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if release is None or (int(release[1]), int(release[2])) < SYNCFS_REPORTS_ERRORS_SINCE:
        return None
    native = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if native is None:
        return None

    def syncfs(descriptor: int) -> None:
        if native(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    return syncfs


def earlier_failure(location: str) -> OSError:
    """Return the error for a file or folder whose sync failed before; a retry may lie."""
    return OSError(errno.EIO, "an earlier sync failed", location)


class Job:
    """One blocking sync call; `run` may run on any thread."""

    __slots__ = ("_sync", "error")

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self.error: OSError | None = None

    def run(self) -> None:
        """Wait for the kernel; afterwards `error` holds the failure, if any."""
        try:
            self._sync()
        except OSError as error:
            self.error = error


class Countdown:
    """Runs several jobs, on any threads, and calls `then` once after the last of them."""

    __slots__ = ("_left", "_lock", "_then")

    def __init__(self, count: int, then: Callable[[], object]) -> None:
        self._left = count
        self._lock = threading.Lock()
        self._then = then

    def run(self, job: Job) -> None:
        """Run one of the jobs."""
        job.run()
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        if is_last:
            self._then()
