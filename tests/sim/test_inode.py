"""What survives when the power of a simulated disk fails, rule by rule."""

import random
from collections.abc import Callable

import pytest

from kafkaesque.sim.disk import CrashPolicy, DiskFaults, SimDisk
from tests.sim.disks import SMALL_PAGES, Later, contents, durable_file, new_disk

SEEDS = range(300)
DROP, KEEP, TORN = CrashPolicy.DROP_UNSYNCED, CrashPolicy.KEEP_ALL, CrashPolicy.TORN


def outcomes(prepare: Callable[[SimDisk], None], path: str = "a") -> set[bytes | None]:
    """Return every content that a file had after torn crashes; None if it was gone."""
    found: set[bytes | None] = set()
    for seed in SEEDS:
        disk = new_disk(seed)
        prepare(disk)
        disk.crash(TORN)
        found.add(contents(disk, path) if path in disk.list("") else None)
    return found


@pytest.mark.parametrize("policy", list(CrashPolicy))
def test_synced_data_survives(policy: CrashPolicy) -> None:
    for seed in SEEDS:
        disk = new_disk(seed)
        durable_file(disk, "a", b"x" * 200)
        disk.open("a").write(200, b"y" * 200)
        disk.crash(policy)
        assert contents(disk, "a")[:200] == b"x" * 200


def test_unsynced_data_is_gone_when_all_of_it_is_dropped() -> None:
    disk = new_disk()
    durable_file(disk, "a", b"abc")
    file = disk.open("a")
    file.write(3, b"def")
    file.write(0, b"z")
    file.truncate(1)
    disk.crash(DROP)
    assert contents(disk, "a") == b"abc"


def test_unsynced_data_survives_when_all_of_it_is_kept() -> None:
    disk = new_disk()
    durable_file(disk, "a", b"abc")
    file = disk.open("a")
    file.write(3, b"def")
    file.write(0, b"z")
    file.truncate(5)
    disk.create("b")
    disk.crash(KEEP)
    assert contents(disk, "a") == b"zbcde"
    assert disk.list("") == ["a", "b"]


def test_a_second_crash_finds_what_the_first_one_left() -> None:
    disk = new_disk()
    durable_file(disk, "a", b"abc")
    disk.open("a").write(3, b"def")
    disk.crash(KEEP)
    disk.crash(DROP)
    assert contents(disk, "a") == b"abcdef"


def test_a_torn_append_loses_any_pages_which_then_read_as_zeros() -> None:
    def append_two_pages(disk: SimDisk) -> None:
        durable_file(disk, "a", b"")
        disk.open("a").write(0, b"1" * 64 + b"2" * 64)

    first, second, zeros = b"1" * 64, b"2" * 64, b"\0" * 64
    assert outcomes(append_two_pages) == {
        b"",
        first,
        first + second,
        first + zeros,
        zeros + second,
        zeros + zeros,
    }


def test_a_torn_overwrite_leaves_old_pages() -> None:
    def overwrite(disk: SimDisk) -> None:
        durable_file(disk, "a", b"o" * 128)
        disk.open("a").write(0, b"n" * 128)

    old, new = b"o" * 64, b"n" * 64
    assert outcomes(overwrite) == {old + old, old + new, new + old, new + new}


def test_pages_are_at_fixed_positions_of_the_file() -> None:
    def append_across_a_page(disk: SimDisk) -> None:
        durable_file(disk, "a", b"d" * 60)
        disk.open("a").write(60, b"n" * 8)

    kept = b"d" * 60
    assert outcomes(append_across_a_page) == {
        kept,
        kept + b"n" * 4,
        kept + b"n" * 8,
        kept + b"n" * 4 + b"\0" * 4,
        kept + b"\0" * 4 + b"n" * 4,
        kept + b"\0" * 8,
    }


def test_a_later_write_can_survive_an_earlier_one() -> None:
    def write_twice(disk: SimDisk) -> None:
        durable_file(disk, "a", b"")
        file = disk.open("a")
        file.write(0, b"1" * 64)
        file.write(64, b"2" * 64)

    found = outcomes(write_twice)
    assert b"\0" * 64 + b"2" * 64 in found
    assert {b"", b"1" * 64, b"1" * 64 + b"2" * 64} <= found


def test_a_file_that_grew_may_return_with_its_old_size_and_new_pages() -> None:
    faults = DiskFaults(size_lost_rate=1.0, prefix_rate=0.0, keep_rate=1.0, tear_rate=0.0)
    disk = new_disk(faults=faults)
    durable_file(disk, "a", b"old")
    file = disk.open("a")
    file.write(0, b"n")
    file.write(3, b"new")
    disk.crash(TORN)
    assert contents(disk, "a") == b"nld"


def test_an_unsynced_cut_may_be_lost() -> None:
    def cut(disk: SimDisk) -> None:
        durable_file(disk, "a", b"abc")
        disk.open("a").truncate(1)

    assert outcomes(cut) == {b"abc", b"a"}


def test_a_created_file_may_vanish_though_its_bytes_were_synced() -> None:
    def create(disk: SimDisk) -> None:
        file = disk.create("a")
        file.write(0, b"abc")
        disk.sync_now([file], [])

    assert outcomes(create) == {None, b"abc"}


def test_a_created_name_may_survive_without_its_unsynced_bytes() -> None:
    def create(disk: SimDisk) -> None:
        file = disk.create("a")
        disk.sync_now([], [""])
        file.write(0, b"abc")

    assert outcomes(create) == {b"", b"abc", b"\0\0\0"}


def test_a_rename_without_a_folder_sync_may_be_undone() -> None:
    def replace(disk: SimDisk) -> None:
        durable_file(disk, "a", b"old")
        durable_file(disk, "b", b"new")
        disk.rename("b", "a")

    assert outcomes(replace, "a") == {b"old", b"new"}
    assert outcomes(replace, "b") == {b"new", None}
    disk = new_disk()
    replace(disk)
    disk.sync_now([], [""])
    disk.crash(DROP)
    assert disk.list("") == ["a"]
    assert contents(disk, "a") == b"new"


def test_a_removed_file_may_reappear() -> None:
    def remove(disk: SimDisk) -> None:
        durable_file(disk, "a", b"abc")
        disk.remove("a")

    assert outcomes(remove) == {b"abc", None}


def test_the_names_that_survive_are_a_prefix_of_the_changes() -> None:
    found = set()
    for seed in SEEDS:
        disk = new_disk(seed)
        for name in "abc":
            disk.create(name)
        disk.crash(TORN)
        found.add("".join(disk.list("")))
    assert found == {"", "a", "ab", "abc"}


def test_folders_lose_their_names_independently() -> None:
    found = set()
    for seed in SEEDS:
        disk = new_disk(seed)
        disk.make_folder("x")
        disk.make_folder("y")
        disk.create("x/a")
        disk.create("y/a")
        disk.crash(TORN)
        found.add((len(disk.list("x")), len(disk.list("y"))))
        assert disk.list("") == ["x", "y"]
    assert found == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_the_same_seed_gives_the_same_crash() -> None:
    def crashed(seed: int) -> dict[str, bytes]:
        disk = new_disk(seed)
        script = random.Random(5)
        files = [disk.create(name) for name in "abcdefgh"]
        disk.sync_now([], [""])
        for _ in range(100):
            file = script.choice(files)
            file.write(script.randint(0, file.size()), script.randbytes(script.randint(1, 300)))
            if script.random() < 0.1:
                disk.sync_now([file], [])
        disk.crash(TORN)
        return {name: contents(disk, name) for name in disk.list("")}

    assert crashed(1) == crashed(1)
    assert crashed(1) != crashed(2)


def durable_after(changes: list[tuple[str, int, bytes]], covered: int) -> bytes:
    """The simple meaning of a sync after `covered` changes, for comparison."""
    image = bytearray()
    for kind, position, data in changes[:covered]:
        if kind == "cut":
            del image[position:]
        else:
            image.extend(bytes(max(0, position - len(image))))
            image[position : position + len(data)] = data
    return bytes(image)


@pytest.mark.parametrize("seed", range(200))
def test_the_durable_bytes_match_a_simple_model(seed: int) -> None:
    script = random.Random(seed)
    later = Later()
    disk = SimDisk(random.Random(seed), later, SMALL_PAGES)
    durable_file(disk, "a", b"")
    file = disk.open("a")
    changes: list[tuple[str, int, bytes]] = []
    syncs: list[int] = []
    covered = 0
    for _ in range(40):
        step = script.choice(["append", "append", "write", "cut", "sync", "complete"])
        size = file.size()
        data = script.randbytes(script.randint(1, 9))
        position = size if step == "append" else script.randint(0, size)
        if step in ("append", "write"):
            file.write(position, data)
            changes.append(("write", position, data))
        elif step == "cut":
            file.truncate(position)
            changes.append(("cut", position, b""))
        elif step == "sync":
            disk.sync([file], [], lambda error: None)
            syncs.append(len(changes))
        elif syncs:
            number = script.randrange(len(syncs))
            later.play(number)
            covered = max(covered, syncs.pop(number))
        assert file.read(0, 999) == durable_after(changes, len(changes))
    disk.crash(DROP)
    assert contents(disk, "a") == durable_after(changes, covered)
