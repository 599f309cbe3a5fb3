"""Simulated disks for tests, and operations that many tests need."""

import random
from collections.abc import Callable

from kafkaesque.sim.disk import DiskFaults, SimDisk
from kafkaesque.slices import Slices

SMALL_PAGES = DiskFaults(page_bytes=64)


class Later:
    """A schedule that a test plays by hand."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Callable[[], None]]] = []

    def __call__(self, delay: int, call: Callable[[], None]) -> None:
        self.waiting.append((delay, call))

    def play(self, number: int = 0) -> None:
        self.waiting.pop(number)[1]()

    def take_slices(self, slices: Slices) -> None:
        """Queue the slices of long work here, too."""
        slices.on_wanted = lambda: self(0, slices.run)


def new_disk(seed: int = 1, faults: DiskFaults = SMALL_PAGES) -> SimDisk:
    return SimDisk(random.Random(seed), faults=faults)


def contents(disk: SimDisk, path: str) -> bytes:
    file = disk.open(path)
    return file.read(0, file.size())


def durable_file(disk: SimDisk, path: str, data: bytes) -> None:
    file = disk.create(path)
    file.write(0, data)
    disk.sync_now([file], [path.rpartition("/")[0]])
    file.close()
