"""Which files keep their descriptors when there are more files than descriptors."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.log.posix_descriptors import Descriptors, Node
from kafkaesque.log.posix_disk import PosixDisk


def open_files(folder: Path) -> int:
    """Count the descriptors of this process for files in a folder."""
    with os.scandir("/proc/self/fd") as entries:
        return sum(Path(entry.path).readlink().parent == folder for entry in entries)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[PosixDisk]:
    disk = PosixDisk(tmp_path, open_files_max=3)
    yield disk
    disk.close()


def test_clean_files_share_a_few_descriptors_and_stay_usable(
    disk: PosixDisk, tmp_path: Path
) -> None:
    files = [disk.create(str(number)) for number in range(8)]
    for number, file in enumerate(files):
        file.write(0, str(number).encode())
        disk.sync_now([file], [])
    assert open_files(tmp_path) <= 3
    assert [file.read(0, 9) for file in files] == [b"%d" % number for number in range(8)]
    assert open_files(tmp_path) <= 3


def test_the_least_recently_used_descriptor_is_closed_first(disk: PosixDisk) -> None:
    first, second, third = (disk.create(name) for name in "abc")
    first.read(0, 1)
    disk.create("d")
    assert second._node.descriptor == -1
    assert first._node.descriptor >= 0
    assert third._node.descriptor >= 0


def test_a_file_with_unsynced_writes_keeps_its_descriptor(disk: PosixDisk, tmp_path: Path) -> None:
    dirty = [disk.create(str(number)) for number in range(5)]
    for file in dirty:
        file.write(0, b"abc")
    descriptors = [file._node.descriptor for file in dirty]
    for number in range(5, 10):
        disk.create(str(number))
    assert [file._node.descriptor for file in dirty] == descriptors
    assert all(descriptor >= 0 for descriptor in descriptors)
    disk.sync_now(dirty, [])
    for number in range(10, 14):
        disk.create(str(number))
    assert open_files(tmp_path) <= 3
    assert [file._node.descriptor for file in dirty] == [-1] * 5


def test_a_cut_counts_as_an_unsynced_write(disk: PosixDisk) -> None:
    file = disk.create("a")
    file.write(0, b"abc")
    disk.sync_now([file], [])
    file.truncate(1)
    for name in "bcdef":
        disk.create(name)
    assert file._node.descriptor >= 0


def test_the_budget_comes_from_the_process_limit(tmp_path: Path) -> None:
    script = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))
from pathlib import Path
from kafkaesque.log.posix_disk import PosixDisk
from tests.log.test_posix_descriptors import open_files
disk = PosixDisk(Path(sys.argv[1]))
for number in range(300):
    disk.create(str(number))
sys.stdout.write(str(open_files(Path(sys.argv[1]))))
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60)
    assert run.stdout == "100"


def test_a_file_on_another_file_system_is_noticed(tmp_path: Path) -> None:
    root = os.open(tmp_path, os.O_RDONLY)
    descriptors = Descriptors(root, 4)
    here, there = Node("a", str(tmp_path / "a")), Node("b", "/proc/self/mem")
    descriptors.open(here, os.O_RDWR | os.O_CREAT)
    descriptors.open(there)
    assert (here.on_root_device, there.on_root_device) == (True, False)
    descriptors.close_all()
    os.close(root)
