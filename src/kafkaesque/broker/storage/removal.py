"""Removes the folders of deleted topics and moved partitions, a little at a time.

A folder is first renamed durably to mark it for removal. Any folder with such a name may be removed
at any later time, and no other is ever removed. Large files take long to remove, so it is done in
slices: a stalled loop would look like a failed broker.
"""

import re
from collections.abc import Callable, Iterator

from kafkaesque.callbacks import ignore
from kafkaesque.clock import Clock
from kafkaesque.events import Events, RemovalFailed
from kafkaesque.log.disk import Disk

DELETED_SUFFIX = ".deleted"
SLICE_MS = 1
"""A slice ends when the clock has advanced by this much: it counts whole milliseconds, so a slice
takes one to two of them plus its last step."""
_TOPIC = re.compile(r".+\.[0-9a-f]{32}")
_NAMED = re.compile(r".+\.[0-9a-f]{32}\.deleted")
"""Only topic folders, which end in an id: a user's own `old.deleted` is left alone."""
_NAMED_PARTITION = re.compile(r"[0-9]+\.[0-9]+\.deleted")
_CUT_BYTES = 16 << 20
"""A file is truncated by this much at a time before it is removed: freeing a gigabyte at once takes
long, especially while the system is writing it out."""
_DONE = object()


class Removal:
    """The folders to be removed from one disk."""

    def __init__(self, disk: Disk, clock: Clock, events: Events) -> None:
        self._disk = disk
        self._clock = clock
        self._events = events
        self._folders: dict[str, Callable[[], None]] = {}
        self._steps: Iterator[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no removal is pending."""
        return not self._folders

    def take(self, folder: str, named: Callable[[], None] | None = None) -> None:
        """Rename a folder for removal, later, and remove it; it may be gone already.

        Until `named` is called the caller must be able to pass it again after a crash: so far
        nothing on disk marks it for removal.
        """
        self._folders.setdefault(folder, named or ignore)

    def take_named(self) -> None:
        """Continue with the folders that an earlier run has marked."""
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
                # It keeps its name, and the next start retries.
                self._events.tell(RemovalFailed(folder=folder, reason=str(error)))
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
            if name in disk.list(above):  # otherwise the topic was deleted meanwhile
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
