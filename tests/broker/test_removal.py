"""Folders are removed a little at a time, and large files in pieces."""

from kafkaesque.broker.storage.removal import Removal
from kafkaesque.sim.disk import SimDisk
from tests.heard import Heard
from tests.log.logs import HandClock
from tests.sim.disks import new_disk

FOLDER = f"orders.{'0' * 32}"


class SlowClock(HandClock):
    """A clock that advances one millisecond whenever it is read."""

    def monotonic_ms(self) -> int:
        self.ms += 1
        return self.ms


def a_disk(files: int) -> SimDisk:
    disk = new_disk()
    disk.make_folder(f"{FOLDER}/0")
    for number in range(files):
        disk.create(f"{FOLDER}/0/{number}")
    return disk


def test_one_tick_removes_no_more_than_its_time_allows() -> None:
    disk = a_disk(files=20)
    removal = Removal(disk, SlowClock(), Heard())
    removal.take(FOLDER)
    ticks = 0
    left = [20]
    while not removal.is_idle:
        before = disk.operations
        removal.tick()
        ticks += 1
        assert disk.operations - before <= 2
        left.append(len(disk.list(f"{FOLDER}.deleted/0")))
    assert ticks > 10
    assert left == sorted(left, reverse=True)
    assert disk.list("") == []


def test_a_folder_is_renamed_before_its_contents_are_removed() -> None:
    disk = a_disk(files=3)
    removal = Removal(disk, SlowClock(), Heard())
    removal.take(FOLDER)
    removal.take(FOLDER)
    removal.tick()
    assert disk.list("") == [f"{FOLDER}.deleted"]


def test_the_callback_runs_once_the_folder_has_its_new_name() -> None:
    disk = a_disk(files=1)
    removal = Removal(disk, SlowClock(), Heard())
    named: list[list[str]] = []
    removal.take(FOLDER, lambda: named.append(disk.list("")))
    removal.take("gone", lambda: named.append(["gone"]))
    assert named == []
    while not removal.is_idle:
        removal.tick()
    assert named == [[f"{FOLDER}.deleted"], ["gone"]]


def test_removing_a_folder_that_is_gone_is_not_an_error() -> None:
    disk = a_disk(files=0)
    removal = Removal(disk, HandClock(), Heard())
    removal.take("other")
    removal.tick()
    assert removal.is_idle
    assert disk.list("") == [FOLDER]


def test_a_large_file_is_truncated_before_it_is_removed() -> None:
    disk = a_disk(files=1)
    disk.open(f"{FOLDER}/0/0").write((17 << 20) - 1, b"x")
    removal = Removal(disk, HandClock(), Heard())
    removal.take(FOLDER)
    before = disk.operations
    removal.tick()
    assert disk.operations - before == 5, "rename, cut, remove, and two folders"
    assert disk.used_bytes == 0


def test_only_the_folder_of_the_removed_partition_is_deleted() -> None:
    disk = a_disk(files=3)
    disk.make_folder(f"{FOLDER}/1.2.deleted")
    disk.create(f"{FOLDER}/1.2.deleted/a")
    disk.make_folder(f"{FOLDER}/old.deleted")
    removal = Removal(disk, HandClock(), Heard())
    removal.take_named()
    removal.tick()
    assert removal.is_idle
    assert disk.list(FOLDER) == ["0", "old.deleted"]
    assert len(disk.list(f"{FOLDER}/0")) == 3


def test_a_partition_whose_topic_is_deleted_meanwhile_is_removed_with_it() -> None:
    disk = a_disk(files=0)
    disk.make_folder(f"{FOLDER}/1.1.deleted")
    removal = Removal(disk, HandClock(), Heard())
    removal.take(FOLDER)
    removal.take(f"{FOLDER}/1.1.deleted")
    removal.tick()
    assert removal.is_idle
    assert disk.list("") == []
