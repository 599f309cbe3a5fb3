"""Removes the folders of deleted topics and of partitions that left, a little at a time.

A folder is first given a name that says what is to become of it, durably; whatever bears such a
name may be removed at any later time, and nothing else is ever removed. Removing takes long for
large files, so it is done in slices: a loop that stalls would look like a broker that died.
"""

import logging
import re
from collections.abc import Callable, Iterator

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
        self._folders: dict[str, Callable[[], None]] = {}
        self._steps: Iterator[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be removed."""
        return not self._folders

    def take(self, folder: str, named: Callable[[], None] | None = None) -> None:
        """Name a folder as one to be removed, later, and remove it; it may be gone already.

        Until `named` is called the caller must be able to give it again after a crash: so far
        nothing on disk says that it is to go.
        """
        self._folders.setdefault(folder, named or _ignore)

    def take_named(self) -> None:
        """Go on with what an earlier run has named."""
        names = self._disk.list("")
        for name in names:
            if _NAMED.fullmatch(name):
                self.take(name)
        for topic in names:
            if _TOPIC.fullmatch(topic):
                for name in self._disk.list(topic):
                    if _NAMED_PARTITION.fullmatch(name):
                        self.take(f"{topic}/{name}")

    def tick(self) -> None:
        """Remove for a moment."""
        until_ms = self._clock.monotonic_ms() + SLICE_MS
        while self._folders:
            folder, named = next(iter(self._folders.items()))
            if self._steps is None:
                self._steps = self._remove(folder, named)
            try:
                is_done = next(self._steps, _DONE) is _DONE
            except OSError as error:
                # It stays named as it is, and the next start tries again.
                log.warning("removal_failed folder=%s reason=%s", folder, error)
                is_done = True
            if is_done:
                self._steps = None
                del self._folders[folder]
            if self._clock.monotonic_ms() >= until_ms:
                return

    def _remove(self, folder: str, named: Callable[[], None]) -> Iterator[None]:
        """Remove a topic's folder: it holds partitions' folders, which hold files."""
        disk = self._disk
        above, _, name = folder.rpartition("/")
        if above:
            if name in disk.list(above):  # else the topic was deleted meanwhile
                yield from self._remove_partition(folder)
            return
        if not folder.endswith(DELETED_SUFFIX):
            if folder not in disk.list(""):
                named()
                return
            disk.rename_folder(folder, folder + DELETED_SUFFIX)
            folder += DELETED_SUFFIX
            named()
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


def _ignore() -> None:
    """It has its name already."""
