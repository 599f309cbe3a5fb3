"""Removes the folders of deleted topics, a little at a time.

A folder is first given a name that says what is to become of it, durably; whatever bears such a
name may be removed at any later time, and nothing else is ever removed. Removing takes long for
large files, so it is done in slices: a loop that stalls would look like a broker that died.
"""

import logging
from collections import deque
from collections.abc import Iterator

from kafkaesque.clock import Clock
from kafkaesque.log.disk import Disk

log = logging.getLogger(__name__)

DELETED_SUFFIX = ".deleted"
SLICE_MS_MAX = 2
_CUT_BYTES = 64 << 20
"""A file is cut by this much at a time before it goes: to free a gigabyte at once takes long."""


class Removal:
    """The folders that wait to be removed from one disk."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._folders: deque[str] = deque()
        self._steps: Iterator[None] = iter(())

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be removed."""
        return not self._folders

    def take(self, folder: str) -> None:
        """Name a folder as one to be removed, and remove it later; it may be gone already."""
        if folder not in self._disk.list(""):
            return
        self._disk.rename_folder(folder, folder + DELETED_SUFFIX)
        self._folders.append(folder + DELETED_SUFFIX)

    def take_named(self) -> None:
        """Go on with what an earlier run has named."""
        self._folders += [name for name in self._disk.list("") if name.endswith(DELETED_SUFFIX)]

    def tick(self) -> None:
        """Remove for a moment."""
        until_ms = self._clock.monotonic_ms() + SLICE_MS_MAX
        while self._folders:
            try:
                if next(self._steps, "done") == "done":
                    self._steps = self._remove(self._folders[0])
                    next(self._steps)
            except OSError as error:
                # It stays named as it is, and the next start tries again.
                log.warning("removal_failed folder=%s reason=%s", self._folders.popleft(), error)
                self._steps = iter(())
            if self._clock.monotonic_ms() >= until_ms:
                return

    def _remove(self, folder: str) -> Iterator[None]:
        """Remove a topic's folder: it holds partitions' folders, which hold files."""
        disk = self._disk
        yield
        for partition in disk.list(folder):
            inner = f"{folder}/{partition}"
            for name in disk.list(inner):
                yield from self._remove_file(f"{inner}/{name}")
            disk.remove_folder(inner)
            yield
        disk.remove_folder(folder)
        assert self._folders[0] == folder
        self._folders.popleft()

    def _remove_file(self, path: str) -> Iterator[None]:
        file = self._disk.open(path)
        try:
            size = file.size()
            while size > _CUT_BYTES:
                size -= _CUT_BYTES
                file.truncate(size)
                yield
        finally:
            file.close()
        self._disk.remove(path)
        yield
