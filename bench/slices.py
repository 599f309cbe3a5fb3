"""How long does a coordinator of 200,000 committed offsets block its broker?

A group coordinator is filled, rebuilt from its log as a new leader does, saved, and rebuilt from
its snapshot. All three run in slices, and a broker does other work between them. Prints one JSON
line for each: the 99th percentile of its slices, the longest, and their sum, which is how long the
event loop would block without slices. All are processor time, which other programs do not stretch.
"""

import json
import queue
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkaesque.broker.machine_hosting.machine_host import MachineHost
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.storage.store import Store
from kafkaesque.clock import SystemClock
from kafkaesque.config import LogConfig, RaftConfig
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.events import Event
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.machines.groups.group_records import CommittedOffset, OffsetKey, to_record
from kafkaesque.machines.groups.groups import Groups
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.server.edge.memory import settle_memory

GROUP = "__consumer_offsets-0"
NODE = 1
OFFSETS = 200_000
OFFSETS_PER_GROUP = 100
OFFSETS_PER_BATCH = 1_000
ANSWER_S = 60


class Unheard:
    """Drops events; the benchmark prints its own results."""

    def tell(self, event: Event) -> None:
        """Drop one event."""


class Hosted:
    """A machine on a folder, driven by hand."""

    def __init__(self, folder: Path) -> None:
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        is_new = not any(folder.iterdir())
        clock, config = SystemClock(), LogConfig(snapshot_age_ms_max=0)
        self.disk = PosixDisk(folder, post=self._answers.put)
        self.store = Store.open(self.disk, config, clock, NODE, fail, Unheard())
        log = (
            self.store.create_log(GROUP, Voters(voters=(NODE,)))
            if is_new
            else self.store.open_log(GROUP)
        )
        self.replica = self.store.replica(log, RaftConfig(), random.Random(1), no_peers)
        self.host = MachineHost(
            MachineSite(
                replica=self.replica,
                clock=clock,
                snapshots=self.store.snapshots(GROUP),
                slices=self.store.slices,
                failed=fail,
            ),
            lambda: Groups(GroupConfig()),
            lambda _: None,
        )
        self.replica.campaign()

    def wait_for(self, done: Callable[[], bool]) -> None:
        """Let the disk complete operations until it is done."""
        while not done():
            self.store.flusher.kick()
            self._answers.get(timeout=ANSWER_S)()

    def fill(self) -> None:
        """Commit offsets."""
        told: list[object] = []
        for first in range(0, OFFSETS, OFFSETS_PER_BATCH):
            numbers = range(first, first + OFFSETS_PER_BATCH)
            self.host.write([offset_record(number) for number in numbers], told.append)
        self.wait_for(lambda: len(told) == OFFSETS // OFFSETS_PER_BATCH)

    def slices(self, until: Callable[[], bool]) -> list[float]:
        """Run slices until the condition holds, and return the milliseconds of each."""
        taken = []
        while not until():
            if self.store.slices.has_work:
                start = time.thread_time()
                self.store.slices.run()
                taken.append((time.thread_time() - start) * 1000)
            else:
                self.store.flusher.kick()
                self._answers.get(timeout=ANSWER_S)()
        return taken


def main() -> None:
    """Measure and print."""
    settle_memory()
    with tempfile.TemporaryDirectory() as root:
        with opened(Path(root)) as hosted:
            hosted.slices(lambda: hosted.host.is_hosted)
            hosted.fill()
        with opened(Path(root)) as hosted:
            report("slices-log", hosted.slices(lambda: hosted.host.is_hosted))
            hosted.host.tick()
            snapshots = hosted.store.snapshots(GROUP)
            report("slices-save", hosted.slices(lambda: bool(snapshots.offsets())))
        with opened(Path(root)) as hosted:
            report("slices-snapshot", hosted.slices(lambda: hosted.host.is_hosted))


@contextmanager
def opened(folder: Path) -> Iterator[Hosted]:
    """A machine on a folder, until it is closed."""
    hosted = Hosted(folder)
    yield hosted
    hosted.store.close()
    hosted.disk.close()


def offset_record(number: int) -> MachineRecord:
    """Return a committed offset that differs from all others."""
    group, partition = divmod(number, OFFSETS_PER_GROUP)
    key = OffsetKey(group=f"readers-of-orders-{group}", topic_id=bytes(16), partition=partition)
    value = CommittedOffset(offset=number, term=3, metadata="", committed_ms=1_700_000_000_000)
    return to_record(key, value)


def report(figure: str, taken: list[float]) -> None:
    """Print the durations of slices."""
    ordered = sorted(taken)
    line = {
        "figure": figure,
        "measured": round(ordered[len(ordered) * 99 // 100], 2),
        "unit": "ms",
        "longest": round(ordered[-1], 2),
        "median": round(ordered[len(ordered) // 2], 2),
        "slices": len(ordered),
        "all": round(sum(ordered)),
    }
    print(json.dumps(line))


def no_peers(group: str, message: object) -> None:
    """Send nothing: the replica is alone."""


def fail(error: LogError) -> None:
    """Fail: nothing repairs the folder of a benchmark."""
    raise error


if __name__ == "__main__":
    main()
