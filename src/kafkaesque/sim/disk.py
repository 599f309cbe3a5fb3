"""A disk in memory that fails as real ones do, reproducibly for the same seed.

It keeps exactly the rules of the log's disk interface: `crash` loses or tears unsynced writes, a
failed sync loses its data for good while reads still show it, a full disk writes a part, a bit
flips. `sim/inode.py` has the model.
"""

import errno
import random
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial

from kafkaesque.clock import Clock
from kafkaesque.log.disk import File, Synced
from kafkaesque.sim.inode import CrashPolicy, DiskFaults, Folder, Inode
from kafkaesque.types import Buffer

__all__ = ["CrashPolicy", "DiskFaults", "PowerLost", "SimDisk", "SimFile"]

Schedule = Callable[[int, Callable[[], None]], object]
"""Runs a callback after a delay, in the world's own time."""

Marks = list[tuple[Inode | Folder, int]]
"""What a sync covers: everything before the change of that number."""

_NEVER = sys.maxsize
_CLOSED = -1


SECTOR_BYTES = 512


class PowerLost(BaseException):
    """The power failed inside a disk operation; no handler of ordinary errors may catch it."""


class SimFile:
    """A handle on a file of a `SimDisk`; invalid after the disk's next crash."""

    __slots__ = ("_disk", "_inode", "_life", "_path")

    def __init__(self, disk: "SimDisk", inode: Inode, path: str) -> None:
        self._disk = disk
        self._inode = inode
        self._life = disk._life
        self._path = path

    @property
    def path(self) -> str:
        """The file's path at the time it was opened or created."""
        return self._path

    def size(self) -> int:
        """Return the file's length in bytes."""
        self._check()
        return len(self._inode.data)

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        self._check()
        bad = self._inode.bad
        if bad is not None and position < bad.stop and bad.start < position + length:
            raise OSError(errno.EIO, "a sector of the simulated disk cannot be read", self._path)
        data = bytes(memoryview(self._inode.data)[position : position + length])
        self._disk.reads += 1
        self._disk.bytes_read += len(data)
        return data

    def write(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`; after an error the bytes there are undefined."""
        disk = self._disk
        assert self._life == disk._life, f"{self._path} is closed or its machine crashed"
        inode = self._inode
        chunk = bytes(data)
        if not chunk:
            return
        disk.operations += 1
        growth = position + len(chunk) - len(inode.data)
        if disk.operations >= disk._power_ends_at:
            self._write_until_power_ends(position, chunk)
        if growth > 0 and inode.is_linked:
            if disk.used_bytes + growth > disk._full_at:
                self._write_until_full(position, chunk, growth)
            disk.used_bytes += growth
        inode.write(position, chunk)
        if disk._clock is not None:
            inode.modified_ms = disk._clock.now_ms()
        disk.writes += 1

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        self._check()
        inode = self._inode
        assert 0 <= size <= len(inode.data), "truncate only cuts"
        self._disk._begin_operation()
        if inode.is_linked:
            self._disk.used_bytes -= len(inode.data) - size
        inode.truncate(size)
        if self._disk._clock is not None:
            inode.modified_ms = self._disk._clock.now_ms()

    def modified_ms(self) -> int:
        """Return the wall time of the last change; 0 on a disk without a clock."""
        self._check()
        return self._inode.modified_ms

    def close(self) -> None:
        """Close the file; syncs nothing. Closing twice does no harm, nor after a crash."""
        self._life = _CLOSED

    def _check(self) -> None:
        assert self._life == self._disk._life, f"{self._path} is closed or its machine crashed"

    def _write_until_power_ends(self, position: int, chunk: bytes) -> None:
        disk = self._disk
        if disk.operations == disk._power_ends_at:
            written = disk._chance.randint(0, len(chunk))
            if written:
                self._inode.write(position, chunk[:written])
        raise PowerLost

    def _write_until_full(self, position: int, chunk: bytes, growth: int) -> None:
        disk = self._disk
        excess = disk.used_bytes + growth - disk._full_at
        part = chunk[: max(0, len(chunk) - excess)]
        if part:
            disk.used_bytes += max(0, position + len(part) - len(self._inode.data))
            self._inode.write(position, part)
        raise OSError(errno.ENOSPC, "the simulated disk is full", self._path)


class SimDisk:
    """A file system in memory, with a power switch.

    Syncs complete through `schedule` after a random delay; without it, at once. `operations` counts
    everything that changes the disk; set `crash_after` to make the power fail inside the operation
    of that number, as `PowerLost`. Then, or at any time, call `crash`: all handles become invalid,
    syncs under way never complete, and the disk can be opened again. `faults` may be replaced at
    any time.
    """

    def __init__(
        self,
        chance: random.Random,
        schedule: Schedule | None = None,
        faults: DiskFaults = DiskFaults(),  # noqa: B008 (frozen)
        *,
        clock: Clock | None = None,
    ) -> None:
        self.reads = 0
        self.bytes_read = 0
        self.writes = 0
        self.syncs = 0
        self.operations = 0
        self.torn_writes = 0
        self.used_bytes = 0
        self.boots = 1
        """How often the machine was started: once, and after each power loss."""
        self._chance = chance
        self._schedule = schedule
        self._clock = clock
        self._life = 0  # the number of crashes; handles and syncs from before a crash are invalid
        self._power_ends_at = _NEVER
        self._fail_next_sync = False
        self._folders: dict[str, Folder] = {"": Folder()}
        self.faults = faults

    @property
    def faults(self) -> DiskFaults:
        """The disk's faults from now on."""
        return self._faults

    @faults.setter
    def faults(self, faults: DiskFaults) -> None:
        self._faults = faults
        self._full_at = _NEVER if faults.full_at_bytes is None else faults.full_at_bytes

    @property
    def crash_after(self) -> int | None:
        """The number of the operation, counted from 1, that a power loss interrupts."""
        return None if self._power_ends_at == _NEVER else self._power_ends_at

    @crash_after.setter
    def crash_after(self, operation: int | None) -> None:
        assert operation is None or operation > self.operations, "that operation has passed"
        self._power_ends_at = _NEVER if operation is None else operation

    def open(self, path: str) -> SimFile:
        """Open an existing file for reading and writing; raises FileNotFoundError."""
        folder, name = self._parent(path)
        return SimFile(self, _existing(folder, name, path), path)

    def create(self, path: str) -> SimFile:
        """Create an empty file; raises FileExistsError."""
        folder, name = self._parent(path)
        if name in folder.names or name in folder.folders:
            raise FileExistsError(errno.EEXIST, "already exists", path)
        self._begin_operation()
        inode = Inode()
        if self._clock is not None:
            inode.modified_ms = self._clock.now_ms()
        folder.change(None, name, inode)
        return SimFile(self, inode, path)

    def list(self, folder: str) -> list[str]:
        """Return the names in `folder`, sorted; none if there is no such folder."""
        found = self._folders.get(folder)
        return [] if found is None else sorted([*found.names, *found.folders])

    def make_folder(self, path: str) -> None:
        """Create a folder and its missing parents; durable on return."""
        _check_path(path)
        self._begin_operation()
        above = self._folders[""]
        so_far = ""
        for part in path.split("/"):
            if part in above.names:
                raise FileExistsError(errno.EEXIST, "is a file", path)
            so_far = f"{so_far}/{part}" if so_far else part
            above.folders[part] = None
            above = self._folders.setdefault(so_far, Folder())

    def rename(self, source: str, target: str) -> None:
        """Rename a file within its folder, atomically replacing any file of that name."""
        assert source != target, "a rename changes the name"
        folder, old_name = self._parent(source)
        target_folder, new_name = self._parent(target)
        assert folder is target_folder, "a file stays in its folder"
        inode = _existing(folder, old_name, source)
        self._begin_operation()
        self._unlink(folder.names.get(new_name))
        folder.change(old_name, new_name, inode)

    def remove(self, path: str) -> None:
        """Remove a file; raises FileNotFoundError. Open handles stay usable."""
        folder, name = self._parent(path)
        inode = _existing(folder, name, path)
        self._begin_operation()
        self._unlink(inode)
        folder.change(name, None, None)

    def rename_folder(self, source: str, target: str) -> None:
        """Rename a folder to a free name in the same parent folder; durable on return."""
        above, old_name = self._parent(source)
        target_above, new_name = self._parent(target)
        assert above is target_above, "a folder stays where it is"
        if old_name not in above.folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", source)
        if new_name in above.names or new_name in above.folders:
            raise FileExistsError(errno.EEXIST, "already exists", target)
        self._begin_operation()
        del above.folders[old_name]
        above.folders[new_name] = None
        inside = f"{source}/"
        self._folders = {
            target + path[len(source) :] if path == source or path.startswith(inside) else path: f
            for path, f in self._folders.items()
        }

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        above, name = self._parent(path)
        if name not in above.folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        if self.list(path):
            raise OSError(errno.ENOTEMPTY, "the folder is not empty", path)
        self._begin_operation()
        del above.folders[name], self._folders[path]

    def location(self) -> str:
        """Return where this disk is: nowhere."""
        return "simulated"

    def boot_id(self) -> str:
        """Return the ID of the machine's current boot; it changes after a power loss."""
        return f"boot {self.boots}"

    def space(self) -> tuple[int, int]:
        """Return the disk's total size and its free space, in bytes."""
        return self._full_at, max(0, self._full_at - self.used_bytes)

    def sync(self, files: Sequence[File], folders: Sequence[str], done: Synced) -> None:
        """Make these files and folders durable as they are now, then call `done`."""
        try:
            complete = self._begin_sync(files, folders)
        except FileNotFoundError as error:
            complete = partial(_same, error)
        finish = partial(self._finish, self._life, complete, done)
        if self._schedule is None:
            finish()
            return
        faults = self._faults
        spread = faults.sync_delay_max - faults.sync_delay_min + 1
        delay = faults.sync_delay_min + int(self._chance.random() * spread)
        self._schedule(delay, finish)

    def sync_now(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """Make these durable before returning; for start-up and recovery, never on the hot path."""
        error = self._begin_sync(files, folders)()
        if error is not None:
            raise error

    def kill(self) -> None:
        """Kill the process, not the machine: handles become invalid, unsynced bytes remain."""
        self._restart()

    def crash(self, policy: CrashPolicy = CrashPolicy.TORN) -> None:
        """Cut the power and restore it: unsynced data is lost as `policy` says."""
        self._restart()
        self.boots += 1
        used = 0
        for folder in self._folders.values():
            folder.crash(policy, self._chance)
            for inode in folder.names.values():
                self.torn_writes += inode.crash(policy, self._chance, self._faults)
                inode.is_linked = True
                used += len(inode.data)
        self.used_bytes = used

    def image(self) -> dict[str, Folder]:
        """Return a copy of the disk's content, as a machine image."""
        return deepcopy(self._folders)

    def restore(self, image: dict[str, Folder]) -> None:
        """Replace the disk's content with that of an image."""
        self._restart()
        self.boots += 1
        self._folders = deepcopy(image)
        inodes = [inode for folder in image.values() for inode in folder.names.values()]
        self.used_bytes = sum(len(inode.data) for inode in inodes)

    def fail_next_sync(self) -> None:
        """Make the next `sync` or `sync_now` report EIO.

        Its data is in limbo from then on: reads show it and later syncs succeed, but a crash loses
        it. Kernels behave like this: they count the pages as clean after the first report.
        """
        self._fail_next_sync = True

    def mend(self, faults: DiskFaults) -> None:
        """Cancel every pending fault, and behave as `faults` says."""
        self.faults = faults
        self._power_ends_at = _NEVER
        self._fail_next_sync = False

    def flip_bit(self, path: str, position: int, bit: int) -> None:
        """Damage a file silently, as ageing media do."""
        folder, name = self._parent(path)
        _existing(folder, name, path).flip_bit(position, bit)

    def spoil(self, path: str, position: int) -> None:
        """Make the sector at a position unreadable until it is rewritten."""
        folder, name = self._parent(path)
        first = position // SECTOR_BYTES * SECTOR_BYTES
        _existing(folder, name, path).bad = range(first, first + SECTOR_BYTES)

    def _restart(self) -> None:
        self._life += 1
        self._power_ends_at = _NEVER
        self._fail_next_sync = False

    def _begin_operation(self) -> None:
        self.operations += 1
        if self.operations >= self._power_ends_at:
            raise PowerLost

    def _begin_sync(
        self, files: Sequence[File], folders: Sequence[str]
    ) -> Callable[[], OSError | None]:
        """Record what a sync called now covers, and return a function that completes it."""
        self._begin_operation()
        self.syncs += 1
        marks: Marks = []
        for file in files:
            assert isinstance(file, SimFile) and file._disk is self, "a file of another disk"
            file._check()
            marks.append((file._inode, file._inode.end_of_changes()))
        for path in folders:
            folder = self._folders.get(path)
            if folder is None:
                raise FileNotFoundError(errno.ENOENT, "no such folder", path)
            marks.append((folder, folder.end_of_changes()))
        fails = self._fail_next_sync
        self._fail_next_sync = False
        return partial(_fail if fails else _make_durable, marks)

    def _finish(self, life: int, complete: Callable[[], OSError | None], done: Synced) -> None:
        if life == self._life and self.operations < self._power_ends_at:
            done(complete())

    def _parent(self, path: str) -> tuple[Folder, str]:
        _check_path(path)
        folder_path, _, name = path.rpartition("/")
        folder = self._folders.get(folder_path)
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        return folder, name

    def _unlink(self, inode: Inode | None) -> None:
        if inode is not None:
            inode.is_linked = False
            self.used_bytes -= len(inode.data)


def _make_durable(marks: Marks) -> OSError | None:
    for changed, end in marks:
        changed.make_durable(end)
    return None


def _fail(marks: Marks) -> OSError | None:
    for changed, end in marks:
        # The file system journals names: it commits them later, or stops writing altogether. Only
        # file contents can be lost unnoticed.
        if isinstance(changed, Inode):
            changed.lose(end)
    return OSError(errno.EIO, "a simulated sync failed")


def _same(error: OSError) -> OSError:
    return error


def _check_path(path: str) -> None:
    assert not any(part in ("", ".", "..") for part in path.split("/")), f"unsafe path {path}"


def _existing(folder: Folder, name: str, path: str) -> Inode:
    inode = folder.names.get(name)
    if inode is None:
        raise FileNotFoundError(errno.ENOENT, "no such file", path)
    return inode
