"""Removes the folders of deleted topics and of partitions that left, a little at a time.

A folder is first given a name that says what is to become of it, durably; whatever bears such a
name may be removed at any later time, and nothing else is ever removed. Removing takes long for
large files, so it is done in slices: a loop that stalls would look like a broker that died.
"""

import logging
import re
from collections import deque
from collections.abc import Iterator

from kafkaesque.clock import Clock
from kafkaesque.log.disk import Disk

log = logging.getLogger(__name__)

DELETED_SUFFIX = ".deleted"
SLICE_MS = 1
"""A slice ends when the clock has moved on by this much: it counts whole milliseconds, so that a
slice takes one to two of them and its last step."""
_TOPIC = re.compile(r".+\.[0-9a-f]{32}")
_NAMED = re.compile(r".+\.[0-9a-f]{32}\.deleted")
"""Only a topic's folder, which ends in its id: what a person named `old.deleted` is theirs."""
_NAMED_PARTITION = re.compile(r"[0-9]+\.[0-9]+\.deleted")
_CUT_BYTES = 16 << 20
"""A file is cut by this much at a time before it goes: to free a gigabyte at once takes long, the
more so while the system is writing it out."""
_DONE = object()


class Removal:
    """The folders that wait to be removed from one disk."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._folders: deque[str] = deque()
        self._steps: Iterator[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be removed."""
        return not self._folders

    def take(self, folder: str) -> None:
        """Name a folder as one to be removed, later, and remove it; it may be gone already.

        Whoever gives it must be able to give it again after a crash: so far nothing is on disk.
        """
        if folder not in self._folders:
            self._folders.append(folder)

    def take_named(self) -> None:
        """Go on with what an earlier run has named."""
        names = self._disk.list("")
        self._folders += [name for name in names if _NAMED.fullmatch(name)]
        for topic in names:
            if _TOPIC.fullmatch(topic):
                for name in self._disk.list(topic):
                    if _NAMED_PARTITION.fullmatch(name):
                        self._folders.append(f"{topic}/{name}")

    def tick(self) -> None:
        """Remove for a moment."""
        until_ms = self._clock.monotonic_ms() + SLICE_MS
        while self._folders:
            if self._steps is None:
                self._steps = self._remove(self._folders[0])
            try:
                is_done = next(self._steps, _DONE) is _DONE
            except OSError as error:
                # It stays named as it is, and the next start tries again.
                log.warning("removal_failed folder=%s reason=%s", self._folders[0], error)
                is_done = True
            if is_done:
                self._steps = None
                self._folders.popleft()
            if self._clock.monotonic_ms() >= until_ms:
                return

    def _remove(self, folder: str) -> Iterator[None]:
        """Remove a topic's folder: it holds partitions' folders, which hold files."""
        disk = self._disk
        above, _, name = folder.rpartition("/")
        if above:
            if name in disk.list(above):  # else the topic was deleted meanwhile
                yield from self._remove_partition(folder)
            return
        if not folder.endswith(DELETED_SUFFIX):
            if folder not in disk.list(""):
                return
            named = folder + DELETED_SUFFIX
            disk.rename_folder(folder, named)
            folder = named
            yield
        for partition in disk.list(folder):
            yield from self._remove_partition(f"{folder}/{partition}")
        disk.remove_folder(folder)

    def _remove_partition(self, folder: str) -> Iterator[None]:
        for name in self._disk.list(folder):
            yield from self._remove_file(f"{folder}/{name}")
        self._disk.remove_folder(folder)
        yield

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
