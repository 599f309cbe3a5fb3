"""The committed copy of a machine: it applies only committed records, and survives restarts."""

from kafkaesque.broker.machine_hosting.machine_follower import WAIT_TICKS_MAX, MachineFollower
from kafkaesque.broker.machine_hosting.machine_host import MachineHost
from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.config import LogConfig
from kafkaesque.entry import Entry, TermOpened
from kafkaesque.errors import LogError
from kafkaesque.log import snapshot
from kafkaesque.log.snapshot import MACHINE
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import stamp
from tests.broker.nodes import GROUP, THREE, Node, append, heartbeat
from tests.broker.test_machine_host import SOON, Words
from tests.log.logs import START_MS, HandClock


class Followed:
    """Node 1 follows node 2, and keeps a copy of the machine."""

    def __init__(self, config: LogConfig = SOON) -> None:
        self.config = config
        self.node = Node(THREE)
        self.changes = 0
        self.failures: list[LogError] = []
        self.clock = HandClock()
        self.start()

    def start(self) -> None:
        snapshots = MachineSnapshots(self.node.disk, GROUP, self.config)
        site = self.node.site(self.clock, self.failures, snapshots)
        self.copy = MachineFollower(site, Words(), self._changed)
        self.host = MachineHost(site, Words, _ignore)

    def tick(self) -> None:
        self.copy.tick()
        self.host.tick()
        self.node.sync()

    def _changed(self) -> None:
        self.changes += 1

    def write(self, index: int, key: str, value: str, commit: int) -> None:
        entry = words(index, key, value)
        self.node.step(append(1, index, entry, prev_term=1, commit=commit))
        self.node.sync()


def _ignore(_: object) -> None:
    """This machine takes no commands here."""


def words(index: int, key: str, value: str, term: int = 1) -> Entry:
    record = Record(offset=0, timestamp_ms=START_MS, key=key.encode(), value=value.encode())
    batch = bytearray(build_batch([record]))
    stamp(memoryview(batch), index - 1, term)
    return Entry(index, index + 1, term, bytes(batch))


def following() -> Followed:
    followed = Followed()
    followed.node.step(append(1, 0, Entry(0, 1, 1, TermOpened())))
    followed.node.sync()
    return followed


def test_a_copy_shows_only_what_is_committed() -> None:
    followed = following()
    followed.write(1, "k", "early", commit=1)
    assert followed.copy.machine.words == {}
    followed.node.step(heartbeat(1, 2))
    assert followed.copy.machine.words == {b"k": b"early"}
    assert followed.copy.applied == 1
    assert followed.changes == 2  # the mark, then the record


def test_a_waiter_is_notified_when_the_copy_shows_the_change() -> None:
    followed = following()
    told: list[int] = []
    followed.copy.when_applied(1, lambda: told.append(1))
    followed.write(1, "k", "v", commit=1)
    assert told == []
    followed.node.step(heartbeat(1, 2))
    assert told == [1]


def test_waiting_for_a_lagging_copy_times_out() -> None:
    followed = following()
    told: list[int] = []
    followed.copy.when_applied(9, lambda: told.append(1))
    for _ in range(WAIT_TICKS_MAX):
        followed.copy.tick()
    assert told == [1]


def test_a_follower_takes_snapshots_and_starts_from_them() -> None:
    followed = following()
    for index in range(1, 6):
        followed.write(index, f"k{index}", "x" * 50, commit=index)
    followed.node.step(heartbeat(1, 5))
    followed.tick()
    assert snapshot.offsets(followed.node.disk, GROUP, MACHINE) == [4]
    followed.node.restart()
    followed.start()
    assert followed.copy.applied == 4
    assert len(followed.copy.machine.words) == 4
    assert followed.copy.machine.applied == 4


def test_a_saved_copy_applies_the_record_that_replaced_an_uncommitted_mark() -> None:
    followed = following()
    followed.write(1, "a", "kept", commit=2)
    followed.copy.stop()
    followed.node.step(append(2, 2, Entry(2, 3, 2, TermOpened()), prev_term=1, commit=2))
    followed.node.sync()
    followed.node.restart()
    followed.start()
    assert followed.copy.applied == 1
    later = words(2, "b", "not passed over")
    opened = Entry(3, 4, 3, TermOpened())
    followed.node.step(append(3, 2, later, opened, prev_term=1, commit=4))
    followed.node.sync()
    assert followed.copy.machine.words == {b"a": b"kept", b"b": b"not passed over"}
