"""The content of a simulated disk, and what of it survives a power loss.

A file is what programs read now, what is durable, and the changes between the two, in order. So is
a folder. A crash takes the log's disk rules at their worst: unsynced writes survive in whole, in
pages or not at all, in any order; unsynced names survive as a prefix of the changes to their
folder, because file systems journal them in order. Unsynced writes never harm durable bytes beside
them.
"""

import random
from dataclasses import dataclass
from enum import Enum, auto

Change = tuple[int, bytes | None]
"""A write of these bytes at a position, or a cut to a size."""

NameChange = tuple[str | None, str | None, "Inode | None"]
"""In one step: the name removed, the name added, and the file that it then names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFaults:
    """How badly a simulated disk behaves; rates are probabilities."""

    sync_delay_min: int = 1
    """A sync takes at least this long, in the unit of the world's schedule."""

    sync_delay_max: int = 10
    """A sync takes at most this long."""

    page_bytes: int = 4096
    """What the disk writes atomically; small pages tear small batches too."""

    prefix_rate: float = 0.5
    """How often a crash keeps the first changes of a file and tears the next one, as disks do that
    write in order; otherwise each change has its own fate.
    """

    keep_rate: float = 0.4
    """How often a change with its own fate survives in whole."""

    tear_rate: float = 0.3
    """How often a write with its own fate survives in part; it is lost if neither applies."""

    size_lost_rate: float = 0.1
    """How often a file that grew comes back with its durable size, whichever pages survived."""

    full_at_bytes: int | None = None
    """All files together hold no more than this; a write beyond it is done in part."""

    def __post_init__(self) -> None:
        assert 0 <= self.sync_delay_min <= self.sync_delay_max
        assert self.page_bytes > 0
        assert self.keep_rate + self.tear_rate <= 1


class CrashPolicy(Enum):
    """What a crash does to everything unsynced."""

    DROP_UNSYNCED = auto()
    KEEP_ALL = auto()
    TORN = auto()
    """Chance decides, change by change and page by page."""


class Inode:
    """The contents of one file.

    Logs append. So while nothing below `durable_size` was changed, `base` is None and the durable
    bytes are the first `durable_size` of `data`: an append and its sync copy nothing else. The
    first change below makes `base` a copy of the durable bytes, kept until everything is synced.
    """

    __slots__ = (
        "_first",
        "_only_appended",
        "bad",
        "base",
        "changes",
        "data",
        "durable_size",
        "is_linked",
        "limbo",
        "modified_ms",
    )

    def __init__(self) -> None:
        self.data = bytearray()
        self.base: bytearray | None = None
        self.durable_size = 0
        self.changes: list[Change] = []
        self.limbo = False  # a sync failed: `data` holds bytes that no later sync will save
        self.is_linked = True
        self.modified_ms = 0
        self.bad: range | None = None
        """Bytes that are unreadable until rewritten."""
        self._first = 0  # the number of changes[0], counted from the file's creation
        self._only_appended = True  # true of all `changes`

    def write(self, position: int, chunk: bytes) -> None:
        """Write in memory, as the page cache does."""
        data = self.data
        if (
            self.bad is not None
            and position < self.bad.stop
            and self.bad.start < position + len(chunk)
        ):
            self.bad = None
        if position == len(data):
            data += chunk
        else:
            self._before_change_at(min(position, len(data)))
            _apply(data, (position, chunk))
        self.changes.append((position, chunk))

    def truncate(self, size: int) -> None:
        """Cut the file in memory."""
        self._before_change_at(size)
        del self.data[size:]
        self.changes.append((size, None))

    def end_of_changes(self) -> int:
        """Return the number of the next change: a sync called now covers those before it."""
        return self._first + len(self.changes)

    def make_durable(self, end: int) -> None:
        """Complete a sync that was called when `end_of_changes` was `end`."""
        count = end - self._first
        if count <= 0:  # a later sync was faster
            return
        changes = self.changes
        if count == len(changes) and not self.limbo:
            self.durable_size = len(self.data)
            self.base = None
            self._only_appended = True
        elif self.base is None and self._only_appended:
            position, chunk = changes[count - 1]
            assert chunk is not None
            self.durable_size = position + len(chunk)
        else:
            base = self._detach()
            for change in changes[:count]:
                _apply(base, change)
            self.durable_size = len(base)
        self._drop_changes(count)

    def lose(self, end: int) -> None:
        """Fail a sync: programs continue to read the changes, but the disk never gets them."""
        count = end - self._first
        if count > 0:
            self._detach()
            self.limbo = True
            self._drop_changes(count)

    def crash(self, policy: CrashPolicy, chance: random.Random, faults: DiskFaults) -> int:
        """Revert to the durable content, plus the unsynced changes that happen to survive.

        Returns how many writes were torn.
        """
        torn = 0
        image = self._detach()
        self.base = None
        durable_size = len(image)
        match policy:
            case CrashPolicy.DROP_UNSYNCED:
                pass
            case CrashPolicy.KEEP_ALL:
                for change in self.changes:
                    _apply(image, change)
            case CrashPolicy.TORN:
                if self.changes:
                    torn = _apply_torn(image, self.changes, chance, faults)
                    if len(image) > durable_size and chance.random() < faults.size_lost_rate:
                        del image[durable_size:]
        self.data = image
        self.durable_size = len(image)
        self.limbo = False
        self._only_appended = True
        self._drop_changes(len(self.changes))
        return torn

    def flip_bit(self, position: int, bit: int) -> None:
        """Damage one bit of the current content, and of the durable copy if there is one."""
        self.data[position] ^= 1 << bit
        if self.base is not None and position < len(self.base):
            self.base[position] ^= 1 << bit

    def _before_change_at(self, position: int) -> None:
        self._only_appended = False
        if self.base is None and position < self.durable_size:
            self._detach()

    def _detach(self) -> bytearray:
        if self.base is None:
            self.base = self.data[: self.durable_size]
        return self.base

    def _drop_changes(self, count: int) -> None:
        self._first += count
        if count == len(self.changes):
            self.changes.clear()
        else:
            del self.changes[:count]


class Folder:
    """The names in one folder; the folders inside it are durable from the start."""

    __slots__ = ("_first", "changes", "durable", "folders", "names")

    def __init__(self) -> None:
        self.names: dict[str, Inode] = {}
        self.durable: dict[str, Inode] = {}
        self.changes: list[NameChange] = []
        self.folders: dict[str, None] = {}
        self._first = 0

    def change(self, gone: str | None, new: str | None, inode: Inode | None) -> None:
        """Change the names in memory."""
        change = (gone, new, inode)
        _rename(self.names, change)
        self.changes.append(change)

    def end_of_changes(self) -> int:
        """Return the number of the next change: a sync called now covers those before it."""
        return self._first + len(self.changes)

    def make_durable(self, end: int) -> None:
        """Complete a sync that was called when `end_of_changes` was `end`."""
        count = max(0, end - self._first)
        for change in self.changes[:count]:
            _rename(self.durable, change)
        self._first += count
        del self.changes[:count]

    def lose(self, end: int) -> None:
        """Fail a sync: the changes are visible until the next crash and never reach the disk."""
        count = max(0, end - self._first)
        self._first += count
        del self.changes[:count]

    def crash(self, policy: CrashPolicy, chance: random.Random) -> None:
        """Revert to the durable names, plus a prefix of the unsynced changes."""
        match policy:
            case CrashPolicy.DROP_UNSYNCED:
                kept = 0
            case CrashPolicy.KEEP_ALL:
                kept = len(self.changes)
            case CrashPolicy.TORN:
                kept = chance.randint(0, len(self.changes)) if self.changes else 0
        self.make_durable(self._first + kept)
        self.lose(self.end_of_changes())
        self.names = dict(self.durable)


def _apply(image: bytearray, change: Change) -> None:
    position, chunk = change
    if chunk is None:
        del image[position:]
        return
    if position > len(image):
        image.extend(bytes(position - len(image)))
    image[position : position + len(chunk)] = chunk


def _apply_torn(
    image: bytearray, changes: list[Change], chance: random.Random, faults: DiskFaults
) -> int:
    """Let some changes survive, some of them in part; return how many were torn."""
    torn = 0
    if chance.random() < faults.prefix_rate:
        kept = chance.randint(0, len(changes))
        for change in changes[:kept]:
            _apply(image, change)
        if kept < len(changes):
            _apply_pages(image, changes[kept], chance, faults.page_bytes)
            torn += 1
        return torn
    for change in changes:
        fate = chance.random()
        if fate < faults.keep_rate:
            _apply(image, change)
        elif fate < faults.keep_rate + faults.tear_rate:
            _apply_pages(image, change, chance, faults.page_bytes)
            torn += 1
    return torn


def _apply_pages(image: bytearray, change: Change, chance: random.Random, page_bytes: int) -> None:
    """Keep some pages of a write; a lost page keeps its old content, or zeros if it is new."""
    position, chunk = change
    if chunk is None:  # a cut happens or not
        if chance.random() < 0.5:
            _apply(image, change)
        return
    end = position + len(chunk)
    start = position
    while start < end:
        stop = min(end, start - start % page_bytes + page_bytes)
        if chance.random() < 0.5:
            _apply(image, (start, chunk[start - position : stop - position]))
        start = stop
    if len(image) < end and chance.random() < 0.5:  # the new size was journaled, its data not
        image.extend(bytes(end - len(image)))


def _rename(names: dict[str, Inode], change: NameChange) -> None:
    gone, new, inode = change
    if gone is not None:
        names.pop(gone, None)  # absent if added by a change whose sync failed
    if new is not None:
        assert inode is not None
        names[new] = inode
