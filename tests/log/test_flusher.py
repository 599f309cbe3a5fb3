"""Rounds: one at a time, for all logs together, and none after a failure."""

import random
from collections.abc import Sequence

from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError
from kafkaesque.log.disk import File
from kafkaesque.log.errors import DiskFailed
from kafkaesque.log.flusher import Flusher
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import StateSaved, start_record
from kafkaesque.log.segments import SyncedPoint
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, SimDisk
from kafkaesque.types import GroupId
from tests.log.stores import a_start
from tests.sim.disks import Later

CONFIG = LogConfig()


class ALog:
    """A log of one file: it records its calls, and each write moves its synced point."""

    def __init__(self, node: "Rounds", group: GroupId) -> None:
        self.group = group
        self.events: list[str] = []
        self.size = 0
        self._captured = 0
        self._node = node
        self._file = node.disk.create(group)
        node.journal.add(start_record(group, a_start(), is_reset=False))

    def write(self) -> None:
        self._file.write(self.size, b"x")
        self.size += 1
        self._node.flusher.request(self)

    def round_begins(self) -> tuple[list[File], list[str]]:
        self.events.append(f"begins at {self.size}")
        self._captured = self.size
        return [self._file], [""]

    def round_postponed(self, files: Sequence[File], folders: Sequence[str]) -> None:
        assert (list(files), folders) == ([self._file], [""])
        self.events.append("postponed")

    def round_done(self) -> SyncedPoint | None:
        self.events.append(f"done to {self._captured}")
        return SyncedPoint(segment_base=0, position=self._captured, end_offset=self._captured)


class Rounds:
    """A journal and a flusher on a disk whose syncs the test completes."""

    def __init__(self) -> None:
        self.later = Later()
        self.disk = SimDisk(random.Random(1), self.later, DiskFaults(page_bytes=32))
        self.journal = Journal.create(self.disk, CONFIG, 1)
        self.failures: list[LogError] = []
        self.flusher = Flusher(self.journal, self.failures.append)

    def synced_on_disk(self, group: GroupId) -> SyncedPoint | None:
        """The point that a restart after a power failure would find."""
        self.disk.crash(CrashPolicy.DROP_UNSYNCED)
        self.later.waiting.clear()
        return Journal.open(self.disk, CONFIG).groups[group].synced


def test_nothing_happens_until_a_round_is_requested() -> None:
    node = Rounds()
    node.flusher.kick()
    assert node.later.waiting == []
    assert node.flusher.rounds == 0


def test_the_driver_is_woken_once_until_it_kicks() -> None:
    node = Rounds()
    heard: list[str] = []
    node.flusher.on_wanted = lambda: heard.append("wanted")
    log = ALog(node, "a")
    log.write()
    log.write()
    node.flusher.after_next_round(lambda: None)
    assert heard == ["wanted"]
    node.flusher.kick()
    log.write()
    node.flusher.before_next_round(lambda: None)
    assert heard == ["wanted", "wanted"]


def test_one_round_serves_all_waiting_logs() -> None:
    node = Rounds()
    logs = [ALog(node, "a"), ALog(node, "b")]
    for log in logs:
        log.write()
        log.write()
    node.flusher.kick()
    assert len(node.later.waiting) == 1
    node.later.play()
    assert [log.events for log in logs] == [["begins at 2", "done to 2"]] * 2
    assert node.flusher.rounds == 1


def test_rounds_run_one_at_a_time_and_later_requests_wait_for_the_next() -> None:
    node = Rounds()
    log = ALog(node, "a")
    log.write()
    node.flusher.kick()
    log.write()
    node.flusher.kick()
    log.write()
    assert len(node.later.waiting) == 1
    assert log.events == ["begins at 1"]
    node.later.play()
    assert log.events == ["begins at 1", "done to 1", "begins at 3"]
    node.later.play()
    assert log.events[-1] == "done to 3"
    assert node.later.waiting == []


def test_a_callback_follows_the_round_that_includes_the_earlier_additions() -> None:
    node = Rounds()
    log = ALog(node, "a")
    heard: list[str] = []
    log.write()
    node.flusher.kick()
    node.flusher.after_next_round(lambda: heard.append("saved"))
    node.later.play()
    assert heard == [], "the current round had already begun"
    node.later.play()
    assert heard == ["saved"]


def test_rounds_between_two_ticks_write_no_synced_point() -> None:
    node = Rounds()
    log = ALog(node, "a")
    for _ in range(3):
        log.write()
        node.flusher.kick()
        node.later.play()
    assert node.synced_on_disk("a") is None


def test_a_synced_point_is_written_with_a_round_that_writes_the_journal_anyway() -> None:
    node = Rounds()
    log = ALog(node, "a")
    log.write()
    node.flusher.kick()
    node.later.play()
    node.journal.add(StateSaved(group="a", term=1, vote=None))
    log.write()
    node.flusher.kick()
    node.later.play()
    point = node.synced_on_disk("a")
    assert point is not None
    assert point.end_offset == 1


def test_after_a_tick_the_synced_point_is_written_with_the_next_round() -> None:
    points = []
    for rounds in (1, 2, 3):
        node = Rounds()
        log = ALog(node, "a")
        for _ in range(rounds):
            log.write()
            node.flusher.pass_time(0)
            node.flusher.kick()
            node.later.play()
        point = node.synced_on_disk("a")
        points.append(None if point is None else point.end_offset)
    assert points == [None, 1, 2]


def test_recording_a_synced_point_requests_no_round() -> None:
    node = Rounds()
    log = ALog(node, "a")
    log.write()
    node.flusher.kick()
    node.later.play()
    assert node.journal.has_additions
    assert node.later.waiting == []
    assert node.flusher.rounds == 1


def test_a_failed_sync_is_reported_once_and_stops_everything() -> None:
    node = Rounds()
    log = ALog(node, "a")
    heard: list[str] = []
    log.write()
    node.flusher.after_next_round(lambda: heard.append("saved"))
    node.disk.fail_next_sync()
    node.flusher.kick()
    log.write()
    node.later.play()
    assert [type(failure) for failure in node.failures] == [DiskFailed]
    node.flusher.kick()  # the next sync would succeed, and prove nothing
    assert node.later.waiting == []
    assert log.events == ["begins at 1"]
    assert heard == []
    assert len(node.failures) == 1


def test_a_round_without_disk_space_is_retried_as_time_passes() -> None:
    node = Rounds()
    log = ALog(node, "a")
    log.write()
    node.disk.faults = DiskFaults(full_at_bytes=node.disk.used_bytes + 3)
    node.flusher.kick()
    assert (node.flusher.is_full, node.flusher.rounds) == (True, 0)
    assert log.events == ["begins at 1", "postponed"]
    node.disk.faults = DiskFaults()
    node.flusher.kick()
    assert node.later.waiting == []
    heard: list[str] = []
    node.flusher.on_wanted = lambda: heard.append("wanted")
    node.flusher.pass_time(1)
    assert heard == ["wanted"]
    node.flusher.kick()
    node.later.play()
    assert log.events == ["begins at 1", "postponed", "begins at 1", "done to 1"]
    assert (node.flusher.is_full, node.failures) == (False, [])


def test_a_delayed_round_begins_when_it_is_due_and_not_before() -> None:
    node = Rounds()
    log = ALog(node, "a")
    node.flusher.pass_time(100)
    node.flusher.request_within(log, 50)
    node.flusher.request_within(log, 500)  # the first request stands
    for now_ms, events in ((149, []), (150, ["begins at 0"])):
        node.flusher.pass_time(now_ms)
        node.flusher.kick()
        assert log.events == events
    node.later.play()
    node.flusher.pass_time(1_000)
    node.flusher.kick()
    assert log.events == ["begins at 0", "done to 0"]


def test_a_report_is_made_at_the_next_kick_and_needs_no_round() -> None:
    node = Rounds()
    told: list[str] = []
    node.flusher.before_next_round(lambda: told.append("written"))
    assert told == []
    node.flusher.kick()
    node.flusher.kick()
    assert told == ["written"]
    assert node.flusher.rounds == 0


def test_after_a_stop_the_current_round_is_not_reported() -> None:
    node = Rounds()
    log = ALog(node, "a")
    log.write()
    node.flusher.kick()
    node.flusher.stop()
    node.later.play()
    log.write()
    node.flusher.kick()
    assert log.events == ["begins at 1"]
    assert node.later.waiting == []
    assert node.failures == []
