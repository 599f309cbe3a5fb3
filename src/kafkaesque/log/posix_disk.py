"""A folder of the machine's own file system, behind the log's disk interface.

One thread owns a disk and everything opened through it; the disk's own threads only wait for the
kernel to sync, and hand their results back to the owner.

After a failed sync the kernel may count the lost pages as clean, so that a second sync would report
success. So a failure is final: the file accepts no more writes and syncs, even when reopened, until
the process ends.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

from kafkaesque.errors import FolderInUse
from kafkaesque.log.boot import read_boot_id
from kafkaesque.log.disk import File, Synced
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import DiskFailed
from kafkaesque.log.posix_descriptors import Descriptors, Node
from kafkaesque.log.posix_sync import (
    Countdown,
    Job,
    earlier_failure,
    load_syncfs,
    make_durable_folder,
    sync_file,
    sync_folder,
)
from kafkaesque.types import Buffer

Post = Callable[[Callable[[], None]], object]
"""Runs a callback on the owner's thread, called from any thread: `loop.call_soon_threadsafe`."""

LOCK_NAME = ".lock"

SYNCED_ONE_BY_ONE_MAX = 10
"""Measured on ext4: 10 files take 0.85 ms by threads and 0.36 ms by syncfs, one file the same."""

ERRORS_BEFORE_SYNC = (errno.ENOENT, errno.EMFILE, errno.ENFILE)
"""Errors of opening a folder, raised before the disk is asked to sync."""


class PosixFile:
    """A handle on one file; made by `PosixDisk.open` and `PosixDisk.create`."""

    __slots__ = ("_closed", "_disk", "_node", "_path")

    def __init__(self, disk: "PosixDisk", node: Node) -> None:
        self._disk = disk
        self._node = node
        self._path = node.path
        self._closed = False

    @property
    def path(self) -> str:
        """The file's path at the time it was opened or created."""
        return self._path

    def size(self) -> int:
        """Return the file's length in bytes."""
        return os.fstat(self._descriptor()).st_size

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        descriptor = self._descriptor()
        data = os.pread(descriptor, length, position)
        if 0 < len(data) < length:  # the end of the file, or an interrupted read
            parts = [data]
            got = len(data)
            while got < length and (data := os.pread(descriptor, length - got, position + got)):
                parts.append(data)
                got += len(data)
            data = b"".join(parts)
        self._disk.reads += 1
        self._disk.bytes_read += len(data)
        return data

    def write(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`; after an error the bytes there are undefined."""
        descriptor = self._descriptor_to_change()
        length = data.nbytes if isinstance(data, memoryview) else len(data)
        done = os.pwrite(descriptor, data, position)
        if done < length:
            rest = memoryview(data).cast("B")
            while done < length:
                count = os.pwrite(descriptor, rest[done:], position + done)
                if count == 0:
                    raise OSError(errno.EIO, "the disk accepts no bytes", self._node.location)
                done += count

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        assert size <= self.size(), "truncate only cuts"
        os.ftruncate(self._descriptor_to_change(), size)

    def modified_ms(self) -> int:
        """Return the wall time of the last change; only a hint, for retention of old files."""
        return os.fstat(self._descriptor()).st_mtime_ns // 1_000_000

    def close(self) -> None:
        """Close the file; syncs nothing. Closing twice does no harm."""
        if not self._closed:
            self._closed = True
            self._disk._release(self._node)

    def _descriptor(self) -> int:
        assert not self._closed, f"{self._path} is closed"
        return self._disk._descriptors.of(self._node)

    def _descriptor_to_change(self) -> int:
        node = self._node
        if node.failed:
            raise earlier_failure(node.location)
        descriptor = node.descriptor
        # With unsynced writes the descriptor is open and held; see `bench/append.py`.
        if descriptor < 0 or node.written == node.synced or self._closed:
            descriptor = self._descriptor()
            self._disk._descriptors.hold(node)
        node.written += 1
        return descriptor


class _Round:
    """The work of one `sync` call."""

    __slots__ = ("early_error", "file_jobs", "folder_jobs", "marks")

    def __init__(self) -> None:
        self.early_error: OSError | None = None
        self.file_jobs: list[tuple[Job, Sequence[Node]]] = []
        self.folder_jobs: list[tuple[Job, str]] = []
        self.marks: list[tuple[Node, int]] = []

    def jobs(self) -> list[Job]:
        """Return each job once: one may cover all files and folders."""
        return list(dict.fromkeys(job for job, _ in (*self.file_jobs, *self.folder_jobs)))


class PosixDisk:
    """A folder on the machine's disk.

    With `post`, syncs run in threads and their `done` is posted to the owner; without it they run
    before `sync` returns, which suits tools. `open_files_max` bounds the descriptors held (default:
    a share of the process's limit); only files with unsynced writes, and removed ones still in use,
    may exceed it. `close` must be called at the end.
    """

    def __init__(
        self,
        root: Path,
        *,
        post: Post | None = None,
        open_files_max: int | None = None,
        threads_max: int = 32,
    ) -> None:
        self.reads = 0
        self.bytes_read = 0
        self._root = root
        self._post = post
        self._nodes: dict[str, Node] = {}
        self._durable_folders: dict[str, None] = {}
        self._failed_folders: dict[str, None] = {}
        self._half_made_folders: set[str] = set()
        self._is_past_durable = False
        self._past_error: OSError | None = None
        self._threads = ThreadPoolExecutor(threads_max, thread_name_prefix="disk-sync")
        self._lock_descriptor = -1
        make_durable_folder(root)
        # Open from the start: syncfs reports errors that happen after this.
        self._root_descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
        self._root_device = os.fstat(self._root_descriptor).st_dev
        self._descriptors = Descriptors(self._root_descriptor, open_files_max)
        self._syncfs = load_syncfs()

    def lock(self) -> None:
        """Keep other processes out of the folder until `close`; raises FolderInUse."""
        assert self._lock_descriptor < 0, "locked already"
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        with disk_errors(LOCK_NAME):
            descriptor = os.open(self._root / LOCK_NAME, flags, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise FolderInUse(str(self._root)) from error
        except OSError as error:
            os.close(descriptor)
            raise DiskFailed(f"cannot lock {self._root}: {error.strerror}") from error
        self._lock_descriptor = descriptor

    def open(self, path: str) -> PosixFile:
        """Open an existing file for reading and writing; raises FileNotFoundError."""
        node = self._nodes.get(path)
        if node is None:
            node = Node(path, self._location(path))
            self._descriptors.open(node)
            self._nodes[path] = node
        node.handles += 1
        return PosixFile(self, node)

    def create(self, path: str) -> PosixFile:
        """Create an empty file; raises FileExistsError."""
        node = Node(path, self._location(path))
        self._descriptors.open(node, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self._nodes[path] = node
        node.handles += 1
        return PosixFile(self, node)

    def list(self, folder: str) -> list[str]:
        """Return the names in `folder`, sorted; none if there is no such folder."""
        try:
            with os.scandir(self._location(folder)) as entries:
                names = sorted(entry.name for entry in entries)
        except FileNotFoundError:
            return []
        if folder == "" and LOCK_NAME in names:
            names.remove(LOCK_NAME)
        return names

    def make_folder(self, path: str) -> None:
        """Create a folder and its missing parents; durable on return."""
        self._location(path)  # checks the path
        above = self._root
        for part in path.split("/"):
            folder = above / part
            if str(folder) not in self._durable_folders:
                self._make_durable(folder)
                self._durable_folders[str(folder)] = None
            above = folder

    def _make_durable(self, folder: Path) -> None:
        """Create a folder unless it exists, and make its name durable.

        An existing folder may still be unsynced, left by a killed process. One sync covers all such
        folders on the root's file system.
        """
        try:
            folder.mkdir()
        except FileExistsError:
            if not folder.is_dir():
                raise
            is_ours = str(folder) in self._half_made_folders  # a sync of it has failed
            if self._syncfs is not None and not is_ours and self._is_on_root_device(folder.parent):
                self._make_past_durable(self._syncfs)
                return
        self._half_made_folders.add(str(folder))
        sync_folder(str(folder.parent))
        self._half_made_folders.discard(str(folder))

    def _make_past_durable(self, syncfs: Callable[[int], None]) -> None:
        """Sync what an earlier run left, once; a failure is final."""
        if self._past_error is not None:
            raise self._past_error
        if self._is_past_durable:
            return
        try:
            syncfs(self._root_descriptor)
        except OSError as error:
            self._past_error = error
            raise
        self._is_past_durable = True

    def rename(self, source: str, target: str) -> None:
        """Rename a file within its folder, atomically replacing any file of that name."""
        assert source != target, "a rename changes the name"
        assert _folder_of(source) == _folder_of(target), "a file stays in its folder"
        location = self._location(target)
        replaced = self._keep_open(target)
        Path(self._location(source)).replace(location)
        if replaced is not None:
            self._forget(replaced)
        node = self._nodes.pop(source, None)
        if node is not None:
            node.path, node.location = target, location
            self._nodes[target] = node

    def remove(self, path: str) -> None:
        """Remove a file; raises FileNotFoundError. Open handles stay usable."""
        node = self._keep_open(path)
        Path(self._location(path)).unlink()
        if node is not None:
            self._forget(node)

    def rename_folder(self, source: str, target: str) -> None:
        """Rename a folder to a free name in the same parent folder; durable on return."""
        above = _folder_of(source)
        assert above == _folder_of(target), "a folder stays where it is"
        location, new_location = self._location(source), self._location(target)
        if Path(new_location).exists():
            raise FileExistsError(errno.EEXIST, "already exists", target)
        Path(location).rename(new_location)
        self._forget_folder(location)
        sync_folder(self._location(above))

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder; durable after a sync of its parent."""
        location = self._location(path)
        Path(location).rmdir()
        self._forget_folder(location)

    def location(self) -> str:
        """Return where this disk is, for messages."""
        return str(self._root.resolve())

    def boot_id(self) -> str:
        """Return the ID of the machine's current boot; it changes after a power loss."""
        return read_boot_id()

    def space(self) -> tuple[int, int]:
        """Return the disk's total size and its free space, in bytes."""
        found = os.fstatvfs(self._root_descriptor)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def sync(self, files: Sequence[File], folders: Sequence[str], done: Synced) -> None:
        """Make these files and folders durable as they are now, then call `done`.

        An error is final: the files concerned accept no more writes and syncs. After `close` this
        does nothing: a later sync must not spoil a clean stop.
        """
        if self._root_descriptor < 0:
            return
        work = self._begin(files, folders)
        jobs = work.jobs()
        if self._post is None:
            self._run(jobs)
            self._finish(work, done)
        elif not jobs:
            self._post(partial(self._finish, work, done))
        else:
            then = partial(self._post, partial(self._finish, work, done))
            countdown = Countdown(len(jobs), then)
            for job in jobs:
                self._threads.submit(countdown.run, job)

    def sync_now(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """Make these durable before returning; for start-up and recovery, never on the hot path."""
        work = self._begin(files, folders)
        self._run(work.jobs())
        error = self._end(work)
        if error is not None:
            raise error

    def close(self) -> None:
        """Wait for the syncs under way, then close every file and unlock the folder."""
        self._threads.shutdown(wait=True)
        self._descriptors.close_all()
        for descriptor in (self._root_descriptor, self._lock_descriptor):
            if descriptor >= 0:
                os.close(descriptor)
        self._root_descriptor = self._lock_descriptor = -1

    # Descriptors.

    def _location(self, path: str) -> str:
        if path == "":
            return str(self._root)
        assert not any(part in ("", ".", "..") for part in path.split("/")), f"unsafe path {path}"
        return f"{self._root}/{path}"

    def _settle(self, node: Node) -> None:
        """Release a descriptor that is not needed, and a node without handles."""
        if node.handles > 0 or node.syncing > 0:
            self._descriptors.allow_closing(node)
            return
        self._descriptors.close(node)
        # A failed file is remembered: its pages would look clean when reopened.
        if not node.failed and not node.removed:
            del self._nodes[node.path]

    def _release(self, node: Node) -> None:
        node.handles -= 1
        self._settle(node)

    def _keep_open(self, path: str) -> Node | None:
        """Open the descriptor of a file that is about to lose its name while in use."""
        node = self._nodes.get(path)
        if node is not None and node.handles > 0:
            self._descriptors.of(node)
        return node

    def _forget_folder(self, location: str) -> None:
        """Make the next folder of this name durable like any other new one."""
        inside = f"{location}/"
        for known in [k for k in self._durable_folders if k == location or k.startswith(inside)]:
            del self._durable_folders[known]

    def _forget(self, node: Node) -> None:
        del self._nodes[node.path]
        node.removed = True
        self._descriptors.hold(node)

    # Syncs.

    def _begin(self, files: Sequence[File], folders: Sequence[str]) -> _Round:
        work = _Round()
        nodes = []
        for node in self._nodes_of(files):
            try:
                if node.failed:
                    raise earlier_failure(node.location)
                self._descriptors.of(node)
            except OSError as error:
                work.early_error = error
                continue
            self._descriptors.hold(node)
            node.syncing += 1
            work.marks.append((node, node.written))
            nodes.append(node)
        sound: list[str] = []
        for folder in dict.fromkeys(folders):
            if folder in self._failed_folders:
                work.early_error = earlier_failure(self._location(folder))
            else:
                sound.append(folder)
        if self._syncfs is not None and self._are_for_syncfs(nodes, sound):
            job = Job(partial(self._syncfs, self._root_descriptor))
            work.file_jobs.append((job, nodes))
            work.folder_jobs.extend((job, folder) for folder in sound)
            return work
        for node in nodes:
            work.file_jobs.append((Job(partial(sync_file, node.descriptor)), (node,)))
        for folder in sound:
            work.folder_jobs.append((Job(partial(sync_folder, self._location(folder))), folder))
        return work

    def _are_for_syncfs(self, nodes: Sequence[Node], folders: Sequence[str]) -> bool:
        """Return whether one syncfs of the root covers all of these at a lower cost."""
        return (
            len(nodes) + len(folders) > SYNCED_ONE_BY_ONE_MAX
            and all(node.on_root_device for node in nodes)
            and all(self._is_on_root_device(Path(self._location(one))) for one in folders)
        )

    def _is_on_root_device(self, folder: Path) -> bool:
        """Return whether syncfs of the root covers a folder; a missing one is for `sync_folder`."""
        try:
            return folder.stat().st_dev == self._root_device
        except FileNotFoundError:
            return False

    def _nodes_of(self, files: Sequence[File]) -> Iterable[Node]:
        nodes: dict[Node, None] = {}
        for file in files:
            assert isinstance(file, PosixFile), "a file of another disk"
            assert not file._closed, f"{file.path} is closed"
            nodes[file._node] = None
        return nodes

    def _run(self, jobs: Sequence[Job]) -> None:
        if len(jobs) == 1:
            jobs[0].run()
        else:
            wait([self._threads.submit(job.run) for job in jobs])

    def _end(self, work: _Round) -> OSError | None:
        """Collect the threads' results; on the owner's thread."""
        first_error = work.early_error
        for job, nodes in work.file_jobs:
            if job.error is not None:
                first_error = first_error or job.error
                for node in nodes:
                    node.failed = True
        for job, folder in work.folder_jobs:
            if job.error is not None:
                first_error = first_error or job.error
                if job.error.errno not in ERRORS_BEFORE_SYNC:
                    self._failed_folders[folder] = None
        for node, written in work.marks:
            node.syncing -= 1
            if not node.failed:
                node.synced = max(node.synced, written)
            self._settle(node)
        return first_error

    def _finish(self, work: _Round, done: Synced) -> None:
        done(self._end(work))


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]
