"""What the machine's own disk does beyond the shared guarantees."""

import asyncio
import errno
import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkaesque.errors import FolderInUse
from kafkaesque.log.posix_disk import SYNCED_ONE_BY_ONE_MAX, PosixDisk
from kafkaesque.log.posix_sync import load_syncfs
from tests.log.test_posix_descriptors import open_files

DEADLINE_S = 10.0


@pytest.fixture
def posted() -> "queue.Queue[Callable[[], None]]":
    return queue.Queue()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[PosixDisk]:
    disk = PosixDisk(tmp_path / "data", open_files_max=3)
    yield disk
    disk.close()


def fail_file_syncs_of(monkeypatch: pytest.MonkeyPatch, *files: str) -> list[str]:
    """Let the kernel's fdatasync fail for these names; returns the names it was called for."""
    asked: list[str] = []

    def fdatasync(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        asked.append(name)
        if name in files:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    return asked


def test_a_missing_root_is_created(tmp_path: Path) -> None:
    disk = PosixDisk(tmp_path / "a" / "b")
    disk.create("file").close()
    disk.close()
    assert (tmp_path / "a" / "b" / "file").exists()


def test_a_partial_write_of_the_kernel_is_completed(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, bytes(data)[:3], at))
    file = disk.create("a")
    file.write(2, memoryview(b"0123456789"))
    assert file.read(0, 20) == b"\0\x000123456789"


def test_a_partial_read_of_the_kernel_is_completed(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.create("a")
    file.write(0, b"0123456789")
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: whole(fd, min(length, 3), at))
    assert file.read(1, 8) == b"12345678"
    assert file.read(1, 80) == b"123456789"


def test_the_modification_time_is_the_file_systems(disk: PosixDisk) -> None:
    file = disk.create("a")
    os.utime(Path(f"/proc/self/fd/{disk._descriptors.of(file._node)}"), (0, 1234.5))
    assert file.modified_ms() == 1_234_500


def test_a_write_during_a_sync_keeps_the_file_dirty(
    tmp_path: Path, posted: "queue.Queue[Callable[[], None]]"
) -> None:
    disk = PosixDisk(tmp_path, post=posted.put, open_files_max=1)
    file = disk.create("a")
    file.write(0, b"abc")
    disk.sync([file], [], lambda error: None)
    file.write(3, b"def")
    posted.get(timeout=DEADLINE_S)()
    disk.create("b")
    assert file._node.descriptor >= 0
    disk.sync([file], [], lambda error: None)
    posted.get(timeout=DEADLINE_S)()
    disk.create("c")
    assert file._node.descriptor == -1
    disk.close()


def test_closing_a_file_during_its_sync_waits_for_the_sync(
    tmp_path: Path, posted: "queue.Queue[Callable[[], None]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    synced: list[int] = []

    def fdatasync(descriptor: int) -> None:
        assert go.wait(DEADLINE_S)
        synced.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    disk = PosixDisk(tmp_path, post=posted.put)
    file = disk.create("a")
    file.write(0, b"abc")
    errors: list[OSError | None] = []
    disk.sync([file], [], errors.append)
    file.close()
    assert open_files(tmp_path) == 1
    go.set()
    posted.get(timeout=DEADLINE_S)()
    assert errors == [None]
    assert synced == [3]
    assert open_files(tmp_path) == 0
    disk.close()


@pytest.mark.parametrize("count", [0, 1, 4, SYNCED_ONE_BY_ONE_MAX + 1])
def test_the_result_of_a_sync_is_posted_and_not_called_directly(
    tmp_path: Path, posted: "queue.Queue[Callable[[], None]]", count: int
) -> None:
    disk = PosixDisk(tmp_path, post=posted.put)
    files = [disk.create(str(number)) for number in range(count)]
    for file in files:
        file.write(0, b"abc")
    errors: list[OSError | None] = []
    disk.sync(files, [""] if count else [], errors.append)
    answer = posted.get(timeout=DEADLINE_S)
    assert errors == []
    answer()
    assert errors == [None]
    disk.close()
    assert posted.empty()


def test_the_result_reaches_an_event_loop(tmp_path: Path) -> None:
    async def run() -> tuple[OSError | None, bool]:
        loop = asyncio.get_running_loop()
        disk = PosixDisk(tmp_path, post=loop.call_soon_threadsafe)
        file = disk.create("a")
        file.write(0, b"abc")
        answer: asyncio.Future[tuple[OSError | None, bool]] = loop.create_future()
        owner = threading.get_ident()
        disk.sync(
            [file], [], lambda error: answer.set_result((error, threading.get_ident() == owner))
        )
        result = await asyncio.wait_for(answer, DEADLINE_S)
        disk.close()
        return result

    assert asyncio.run(run()) == (None, True)


def test_few_files_are_synced_one_by_one_and_many_at_once(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = fail_file_syncs_of(monkeypatch)
    names = [f"f{number}" for number in range(SYNCED_ONE_BY_ONE_MAX + 1)]
    files = [disk.create(name) for name in names]
    disk.sync_now(files[:-1], [])
    assert sorted(asked) == sorted(names[:-1])
    asked.clear()
    disk.sync_now(files, [])
    assert asked == ([] if load_syncfs() else sorted(names))


def test_files_on_several_file_systems_are_synced_one_by_one(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = fail_file_syncs_of(monkeypatch)
    names = [f"f{number:02}" for number in range(SYNCED_ONE_BY_ONE_MAX + 1)]
    files = [disk.create(name) for name in names]
    files[-1].write(0, b"abc")  # keeps its descriptor, and with it the device set here
    files[-1]._node.on_root_device = False
    disk.sync_now(files, [])
    assert sorted(asked) == names


def test_without_syncfs_many_files_are_synced_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkaesque.log.posix_disk.load_syncfs", lambda: None)
    disk = PosixDisk(tmp_path)
    asked = fail_file_syncs_of(monkeypatch)
    names = [f"f{number:02}" for number in range(SYNCED_ONE_BY_ONE_MAX + 5)]
    disk.sync_now([disk.create(name) for name in names], [])
    assert sorted(asked) == names
    disk.close()


def test_on_an_old_linux_that_hides_errors_syncfs_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = os.uname()
    old = os.uname_result((name.sysname, name.nodename, "5.4.0-42", name.version, name.machine))
    monkeypatch.setattr(os, "uname", lambda: old)
    assert load_syncfs() is None


@pytest.mark.skipif(load_syncfs() is None, reason="needs syncfs")
def test_syncfs_of_a_bad_descriptor_raises() -> None:
    syncfs = load_syncfs()
    assert syncfs is not None
    with pytest.raises(OSError, match="Bad file descriptor"):
        syncfs(-1)


def test_a_failed_sync_is_final_for_its_files(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = disk.create("good"), disk.create("bad")
    for file in (good, bad):
        file.write(0, b"abc")
    asked = fail_file_syncs_of(monkeypatch, "bad")
    errors: list[OSError | None] = []
    disk.sync([good, bad], [], errors.append)
    assert [error.errno for error in errors if error] == [errno.EIO]
    asked.clear()
    with pytest.raises(OSError, match="earlier sync failed"):
        disk.sync_now([bad], [])
    with pytest.raises(OSError, match="earlier sync failed"):
        bad.write(3, b"x")
    with pytest.raises(OSError, match="earlier sync failed"):
        bad.truncate(0)
    assert asked == []
    assert bad.read(0, 9) == b"abc"
    good.write(3, b"def")
    disk.sync_now([good], [])
    assert asked == ["good"]


def test_a_failed_file_stays_failed_when_opened_again(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.create("bad")
    file.write(0, b"abc")
    with monkeypatch.context() as patch:
        fail_file_syncs_of(patch, "bad")
        with pytest.raises(OSError, match="Input/output"):
            disk.sync_now([file], [])
    file.close()
    disk.rename("bad", "renamed")
    again = disk.open("renamed")
    with pytest.raises(OSError, match="earlier sync failed"):
        disk.sync_now([again], [])
    again.close()
    disk.remove("renamed")
    fresh = disk.create("renamed")
    fresh.write(0, b"abc")
    disk.sync_now([fresh], [])


def test_a_failed_syncfs_fails_every_file_of_the_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def syncfs(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("kafkaesque.log.posix_disk.load_syncfs", lambda: syncfs)
    disk = PosixDisk(tmp_path)
    files = [disk.create(str(number)) for number in range(SYNCED_ONE_BY_ONE_MAX + 1)]
    with pytest.raises(OSError, match="Input/output"):
        disk.sync_now(files, [])
    for file in files:
        with pytest.raises(OSError, match="earlier sync failed"):
            file.write(0, b"x")
    disk.close()


def test_a_failed_folder_sync_is_final_for_the_folder(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    disk.make_folder("t")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match="Input/output"):
            disk.sync_now([], ["t"])
    with pytest.raises(OSError, match="earlier sync failed"):
        disk.sync_now([], ["t"])
    disk.sync_now([], [""])


def test_a_created_folder_is_durable_in_each_folder_above_it(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def recorded(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    disk.make_folder("a/b/c")
    assert synced == ["data", "a", "b"]
    disk.make_folder("a/b/d")
    assert synced == ["data", "a", "b", "b"]


def test_a_folder_in_use_is_refused_by_name(tmp_path: Path) -> None:
    first, second = PosixDisk(tmp_path), PosixDisk(tmp_path)
    first.lock()
    with pytest.raises(FolderInUse, match=str(tmp_path)) as refusal:
        second.lock()
    assert refusal.value.folder == str(tmp_path)
    assert first.list("") == []
    first.close()
    second.lock()
    second.close()


def test_closing_the_disk_ends_its_threads_and_descriptors(tmp_path: Path) -> None:
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    threads_before = set(threading.enumerate())
    posted: queue.Queue[Callable[[], None]] = queue.Queue()
    disk = PosixDisk(tmp_path, post=posted.put)
    disk.lock()
    file = disk.create("a")
    file.write(0, b"abc")
    errors: list[OSError | None] = []
    disk.sync([file], [""], errors.append)
    disk.close()
    assert set(threading.enumerate()) <= threads_before
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    posted.get(timeout=DEADLINE_S)()
    assert errors == [None]
    with pytest.raises(AssertionError, match="the disk is closed"):
        file.read(0, 1)


def test_a_full_disk_is_reported_as_such(disk: PosixDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite

    def pwrite(descriptor: int, data: bytes, at: int) -> int:
        if at >= 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(descriptor, bytes(data)[: 3 - at], at)

    file = disk.create("a")
    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OSError, match="No space") as full:
        file.write(0, b"abcdef")
    assert full.value.errno == errno.ENOSPC
    assert file.size() == 3
    file.truncate(0)
    disk.sync_now([file], [])


def test_a_sync_queued_before_the_disk_was_closed_does_not_start(tmp_path: Path) -> None:
    posted: queue.Queue[Callable[[], None]] = queue.Queue()
    disk = PosixDisk(tmp_path, post=posted.put)
    file = disk.create("a")
    file.write(0, b"x")
    heard: list[OSError | None] = []
    disk.sync([file], [], lambda _: disk.sync([], [""], heard.append))
    disk.close()
    posted.get(timeout=DEADLINE_S)()
    assert posted.empty()
    assert heard == []


class CountedSyncfs:
    """Syncs nothing, counts, and fails on request."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails = False

    def __call__(self, descriptor: int) -> None:
        self.calls += 1
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")


@pytest.fixture
def syncfs(monkeypatch: pytest.MonkeyPatch) -> CountedSyncfs:
    counted = CountedSyncfs()
    monkeypatch.setattr("kafkaesque.log.posix_disk.load_syncfs", lambda: counted)
    return counted


def folder_syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    monkeypatch.setattr("kafkaesque.log.posix_disk.sync_folder", asked.append)
    return asked


def test_many_folders_are_synced_by_one_syncfs(
    tmp_path: Path, syncfs: CountedSyncfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = PosixDisk(tmp_path)
    names = [f"topic/{number}" for number in range(SYNCED_ONE_BY_ONE_MAX + 1)]
    for name in names:
        disk.make_folder(name)
    asked = folder_syncs(monkeypatch)
    disk.sync_now([], names)
    assert (syncfs.calls, asked) == (1, [])
    disk.sync_now([], names[:2] * SYNCED_ONE_BY_ONE_MAX)
    assert (syncfs.calls, len(asked)) == (1, 2)
    disk.close()


def test_a_failed_syncfs_fails_every_folder_of_the_round(
    tmp_path: Path, syncfs: CountedSyncfs
) -> None:
    disk = PosixDisk(tmp_path)
    names = [f"topic/{number}" for number in range(SYNCED_ONE_BY_ONE_MAX + 1)]
    for name in names:
        disk.make_folder(name)
    syncfs.fails = True
    with pytest.raises(OSError, match="Input/output"):
        disk.sync_now([], names)
    for name in names:
        with pytest.raises(OSError, match="earlier sync failed"):
            disk.sync_now([], [name])
    disk.close()


def test_folders_of_an_earlier_run_are_made_durable_by_one_syncfs(
    tmp_path: Path, syncfs: CountedSyncfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (tmp_path / f"topic-{number}" / "0").mkdir(parents=True)
    disk = PosixDisk(tmp_path)
    asked = folder_syncs(monkeypatch)
    for number in range(30):
        disk.make_folder(f"topic-{number}/0")
    assert (syncfs.calls, asked) == (1, [])
    disk.make_folder("topic-0/1")
    assert (syncfs.calls, asked) == (1, [str(tmp_path / "topic-0")])
    disk.close()


def test_an_earlier_run_whose_folders_could_not_be_synced_is_not_retried(
    tmp_path: Path, syncfs: CountedSyncfs
) -> None:
    for number in range(2):
        (tmp_path / f"topic-{number}" / "0").mkdir(parents=True)
    disk = PosixDisk(tmp_path)
    syncfs.fails = True
    with pytest.raises(OSError, match="Input/output"):
        disk.make_folder("topic-0/0")
    syncfs.fails = False  # the kernel reports an error once; the data is lost all the same
    with pytest.raises(OSError, match="Input/output"):
        disk.make_folder("topic-1/0")
    disk.close()


def test_a_folder_whose_sync_failed_does_not_count_as_one_of_an_earlier_run(
    tmp_path: Path, syncfs: CountedSyncfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = PosixDisk(tmp_path)
    asked: list[str] = []

    def sync_folder(location: str) -> None:
        asked.append(location)
        if len(asked) == 1:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("kafkaesque.log.posix_disk.sync_folder", sync_folder)
    with pytest.raises(OSError, match="Input/output"):
        disk.make_folder("topic")
    disk.make_folder("topic")
    assert (syncfs.calls, asked) == (0, [str(tmp_path)] * 2)
    disk.close()
