"""The guarantees of both disks, checked on each of them by the same tests."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.log.disk import Disk
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.sim.disk import SimDisk


@pytest.fixture(params=["posix", "sim"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param == "sim":
        yield SimDisk(random.Random(1))
        return
    posix = PosixDisk(tmp_path, open_files_max=2)  # so few that every test closes and reopens
    yield posix
    posix.close()


def contents(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    data = file.read(0, file.size())
    file.close()
    return data


def write_file(disk: Disk, path: str, data: bytes) -> None:
    file = disk.create(path)
    file.write(0, data)
    file.close()


def crowd(disk: Disk, names: str) -> None:
    """Open more files than there are descriptors, so that idle ones are closed."""
    for name in names:
        disk.create(name).size()


def test_bytes_are_read_where_they_were_written(disk: Disk) -> None:
    file = disk.create("a")
    file.write(0, b"hello")
    file.write(5, b" world")
    file.write(0, b"J")
    assert file.read(0, 100) == b"Jello world"
    assert file.read(4, 3) == b"o w"
    assert file.size() == 11


def test_a_read_past_the_end_returns_nothing(disk: Disk) -> None:
    file = disk.create("a")
    file.write(0, b"abc")
    assert file.read(3, 10) == b""
    assert file.read(50, 10) == b""


def test_a_gap_reads_as_zeros(disk: Disk) -> None:
    file = disk.create("a")
    file.write(4, b"x")
    assert file.read(0, 10) == b"\0\0\0\0x"


def test_an_empty_write_changes_nothing(disk: Disk) -> None:
    file = disk.create("a")
    file.write(4, b"")
    assert file.size() == 0


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_written(
    disk: Disk, kind: type[bytes] | type[bytearray] | type[memoryview]
) -> None:
    file = disk.create("a")
    file.write(0, kind(b"abc"))
    assert file.read(0, 3) == b"abc"


def test_a_buffer_changed_after_the_write_does_not_change_the_file(disk: Disk) -> None:
    file = disk.create("a")
    buffer = bytearray(b"abc")
    file.write(0, buffer)
    buffer[0] = ord("z")
    disk.sync_now([file], [])
    assert file.read(0, 3) == b"abc"


def test_truncate_cuts_the_end(disk: Disk) -> None:
    file = disk.create("a")
    file.write(0, b"abcdef")
    file.truncate(2)
    assert file.size() == 2
    file.write(4, b"x")
    assert file.read(0, 10) == b"ab\0\0x"


def test_truncate_does_not_make_a_file_longer(disk: Disk) -> None:
    file = disk.create("a")
    with pytest.raises(AssertionError):
        file.truncate(1)


def test_two_handles_on_one_file_see_the_same_bytes(disk: Disk) -> None:
    writer = disk.create("a")
    reader = disk.open("a")
    writer.write(0, b"abc")
    assert reader.read(0, 3) == b"abc"
    writer.close()
    assert reader.read(0, 3) == b"abc"


def test_a_closed_handle_cannot_be_used_and_closes_twice(disk: Disk) -> None:
    file = disk.create("a")
    file.close()
    file.close()
    with pytest.raises(AssertionError):
        file.read(0, 1)
    with pytest.raises(AssertionError):
        file.write(0, b"x")
    with pytest.raises(AssertionError):
        disk.sync_now([file], [])


def test_opening_what_does_not_exist_is_refused(disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open("a")
    with pytest.raises(FileNotFoundError):
        disk.open("no/such/folder")


def test_creating_needs_a_free_name_in_an_existing_folder(disk: Disk) -> None:
    disk.create("a")
    with pytest.raises(FileExistsError):
        disk.create("a")
    with pytest.raises(FileNotFoundError):
        disk.create("folder/a")


def test_names_are_listed_in_order_with_the_folders_among_them(disk: Disk) -> None:
    disk.make_folder("t/b")
    disk.create("t/c")
    disk.create("t/a")
    assert disk.list("t") == ["a", "b", "c"]
    assert disk.list("") == ["t"]
    assert disk.list("t/b") == []
    assert disk.list("nowhere") == []


def test_creating_an_existing_folder_does_no_harm(disk: Disk) -> None:
    disk.make_folder("a/b")
    disk.create("a/b/file")
    disk.make_folder("a/b")
    disk.make_folder("a")
    assert disk.list("a/b") == ["file"]


def test_a_folder_cannot_take_the_name_of_a_file(disk: Disk) -> None:
    disk.create("a")
    with pytest.raises(FileExistsError):
        disk.make_folder("a")


def test_a_rename_replaces_an_existing_file(disk: Disk) -> None:
    write_file(disk, "old", b"old")
    write_file(disk, "new", b"new")
    disk.rename("new", "old")
    assert contents(disk, "old") == b"new"
    assert disk.list("") == ["old"]


def test_an_open_file_follows_its_rename(disk: Disk) -> None:
    file = disk.create("a")
    file.write(0, b"abc")
    disk.sync_now([file], [])
    disk.rename("a", "b")
    crowd(disk, "cdef")
    file.write(3, b"d")
    assert contents(disk, "b") == b"abcd"
    assert file.path == "a"


def test_a_replaced_file_can_still_be_read_through_open_handles(disk: Disk) -> None:
    write_file(disk, "a", b"first")
    reader = disk.open("a")
    write_file(disk, "b", b"second")
    disk.rename("b", "a")
    crowd(disk, "cdef")
    assert reader.read(0, 10) == b"first"
    assert contents(disk, "a") == b"second"


def test_a_removed_file_can_still_be_used_through_open_handles(disk: Disk) -> None:
    file = disk.create("a")
    file.write(0, b"abc")
    disk.sync_now([file], [])
    crowd(disk, "cdef")
    disk.remove("a")
    crowd(disk, "ghij")
    assert "a" not in disk.list("")
    assert file.read(0, 3) == b"abc"
    disk.sync_now([file], [])


def test_a_name_can_be_reused_after_its_file_was_removed(disk: Disk) -> None:
    old = disk.create("a")
    old.write(0, b"old")
    disk.remove("a")
    write_file(disk, "a", b"new")
    old.close()
    assert contents(disk, "a") == b"new"


def test_removing_or_renaming_what_does_not_exist_is_refused(disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.remove("a")
    with pytest.raises(FileNotFoundError):
        disk.rename("a", "b")


def test_a_failed_rename_leaves_the_target_alone(disk: Disk) -> None:
    file = disk.create("b")
    file.write(0, b"abc")
    with pytest.raises(FileNotFoundError):
        disk.rename("a", "b")
    assert contents(disk, "b") == b"abc"
    disk.sync_now([file], [""])


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a//b", "./a"])
def test_paths_that_leave_the_root_or_have_two_spellings_are_refused(disk: Disk, path: str) -> None:
    with pytest.raises(AssertionError):
        disk.open(path)
    with pytest.raises(AssertionError):
        disk.create(path)
    with pytest.raises(AssertionError):
        disk.make_folder(path)


def test_a_file_stays_in_its_folder(disk: Disk) -> None:
    disk.make_folder("t")
    disk.create("a")
    with pytest.raises(AssertionError):
        disk.rename("a", "t/a")


def test_a_sync_calls_back_once_without_an_error(disk: Disk) -> None:
    disk.make_folder("t")
    files = [disk.create(f"t/{number}") for number in range(15)]
    for file in files:
        file.write(0, b"abc")
    errors: list[OSError | None] = []
    disk.sync(files[:3], ["t"], errors.append)
    disk.sync([*files, files[0]], ["t", ""], errors.append)
    disk.sync([], [], errors.append)
    assert errors == [None, None, None]


def test_syncing_a_folder_that_does_not_exist_is_reported(disk: Disk) -> None:
    errors: list[OSError | None] = []
    disk.sync([], ["nowhere"], errors.append)
    assert [type(error) for error in errors] == [FileNotFoundError]
    with pytest.raises(FileNotFoundError):
        disk.sync_now([], ["nowhere"])
    disk.make_folder("nowhere")
    disk.sync_now([], ["nowhere"])


def test_reads_are_counted(disk: Disk) -> None:
    assert isinstance(disk, PosixDisk | SimDisk)
    file = disk.create("a")
    file.write(0, b"abcde")
    file.read(1, 100)
    assert (disk.reads, disk.bytes_read) == (1, 4)


def test_both_disks_agree_on_a_long_random_run(tmp_path: Path) -> None:
    chance = random.Random(7)
    posix = PosixDisk(tmp_path, open_files_max=2)
    disks: list[Disk] = [posix, SimDisk(random.Random(1))]
    names = "abcdef"
    for _ in range(400):
        name, other = chance.sample(names, 2)
        position, size = chance.randint(0, 50), chance.randint(0, 50)
        data = chance.randbytes(chance.randint(0, 30))
        step = chance.choice(["write", "write", "write", "cut", "rename", "remove", "sync"])
        for disk in disks:
            apply_step(disk, step, name, other, position=position, size=size, data=data)
        views = [{name: contents(disk, name) for name in disk.list("")} for disk in disks]
        assert views[0] == views[1]
    posix.close()


def apply_step(
    disk: Disk, step: str, name: str, other: str, *, position: int, size: int, data: bytes
) -> None:
    if name not in disk.list(""):
        disk.create(name).close()
    file = disk.open(name)
    match step:
        case "write":
            file.write(position, data)
        case "cut":
            file.truncate(min(size, file.size()))
        case "rename":
            disk.rename(name, other)
        case "remove":
            disk.remove(name)
        case "sync":
            disk.sync_now([file], [""])
    file.close()


def test_a_renamed_folder_keeps_its_contents(disk: Disk) -> None:
    disk.make_folder("orders/0")
    write_file(disk, "orders/0/a", b"abc")
    disk.rename_folder("orders", "orders.deleted")
    assert disk.list("orders") == []
    assert disk.list("") == ["orders.deleted"]
    assert contents(disk, "orders.deleted/0/a") == b"abc"


def test_a_folder_can_be_created_where_one_was_renamed(disk: Disk) -> None:
    disk.make_folder("orders/0")
    disk.rename_folder("orders", "orders.deleted")
    disk.make_folder("orders/0")
    write_file(disk, "orders/0/a", b"abc")
    assert disk.list("") == ["orders", "orders.deleted"]


def test_a_folder_never_replaces_another(disk: Disk) -> None:
    disk.make_folder("a")
    disk.make_folder("b")
    with pytest.raises(FileExistsError):
        disk.rename_folder("a", "b")
    with pytest.raises(FileNotFoundError):
        disk.rename_folder("c", "d")


def test_only_an_empty_folder_can_be_removed(disk: Disk) -> None:
    disk.make_folder("a")
    write_file(disk, "a/file", b"abc")
    with pytest.raises(OSError, match="not empty"):
        disk.remove_folder("a")
    disk.remove("a/file")
    disk.remove_folder("a")
    assert disk.list("") == []
    with pytest.raises(FileNotFoundError):
        disk.remove_folder("a")


def test_the_free_space_is_at_most_the_total(disk: Disk) -> None:
    total, usable = disk.space()
    assert 0 < usable <= total
    assert disk.location()
