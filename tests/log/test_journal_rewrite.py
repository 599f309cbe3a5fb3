"""The journal is replaced with a shorter one atomically, wherever the power fails."""

import random

import pytest

from kafkaesque.config import LogConfig
from kafkaesque.log.journal import PATH, Journal
from kafkaesque.log.journal_records import StateSaved, start_record
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, PowerLost, SimDisk
from tests.log.stores import a_start, journal_bytes, state_end
from tests.sim.disks import Later

SMALL = LogConfig(journal_rewrite_bytes=60)
NEW_PATH = "journal.new"
ROUNDS = 25


class Votes:
    """A node that only saves terms, one per round, and knows which are durable."""

    def __init__(self, seed: int = 1) -> None:
        self.later = Later()
        self.disk = SimDisk(random.Random(seed), self.later, DiskFaults(page_bytes=32))
        self.saved = 0
        self.durable = 0
        self.errors: list[OSError] = []

    def run(self) -> None:
        self.journal = Journal.create(self.disk, SMALL, 1)
        self.journal.add(start_record("a", a_start(), is_reset=False))
        self.save(ROUNDS)

    def save(self, rounds: int) -> None:
        for _ in range(rounds):
            self.begin()
            while self.later.waiting:
                self.later.play()

    def begin(self) -> None:
        self.saved += 1
        term = self.saved
        self.journal.add(StateSaved(group="a", term=term, vote=1))

        def done(error: OSError | None) -> None:
            if error is None:
                self.durable = term
            else:
                self.errors.append(error)

        self.journal.write_round([], [], done)

    def begin_rewrite(self) -> None:
        """Save terms until a round is a rewrite, and begin that one."""
        for _ in range(ROUNDS):
            self.begin()
            if NEW_PATH in self.disk.list(""):
                return
            self.later.play()
        raise AssertionError("nothing was rewritten")

    def reopen(self) -> None:
        self.later.waiting.clear()
        self.journal = Journal.open(self.disk, SMALL)

    @property
    def term(self) -> int:
        state = self.journal.groups.get("a")
        return 0 if state is None else state.hard_state.term


def test_a_rewrite_leaves_one_frame_with_everything_and_a_copy_of_it() -> None:
    votes = Votes()
    votes.run()
    before = len(journal_bytes(votes.disk))
    while len(journal_bytes(votes.disk)) >= before:
        before = len(journal_bytes(votes.disk))
        votes.save(1)
    data = journal_bytes(votes.disk)
    assert data.count(b"KJFR") == 2
    assert data.endswith(data[: state_end(data)])
    assert votes.disk.list("") == [PATH]
    votes.reopen()
    assert votes.term == votes.saved


def test_additions_during_a_rewrite_go_to_the_new_file() -> None:
    votes = Votes()
    votes.run()
    votes.begin_rewrite()
    votes.journal.add(StateSaved(group="a", term=100, vote=2))
    votes.later.play()
    votes.later.play()
    assert votes.durable == votes.saved
    assert votes.journal.has_additions
    votes.journal.write_round([], [], lambda _: None)
    votes.later.play()
    votes.disk.crash(CrashPolicy.DROP_UNSYNCED)
    votes.reopen()
    assert votes.term == 100


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("policy", CrashPolicy)
def test_a_crash_inside_any_operation_leaves_a_whole_journal(policy: CrashPolicy) -> None:
    counting = Votes()
    counting.run()
    recoveries = 0
    for number in range(1, counting.disk.operations + 1):
        for seed in range(4 if policy is CrashPolicy.TORN else 1):
            votes = Votes(seed)
            votes.disk.crash_after = number
            with pytest.raises(PowerLost):
                votes.run()
            votes.disk.crash(policy)
            if not Journal.exists(votes.disk):
                assert votes.saved == 0, "a journal that accepted a record stays"
                continue
            votes.reopen()
            assert votes.durable <= votes.term <= votes.saved
            term = votes.term
            votes.disk.crash(policy)
            votes.reopen()
            assert votes.term == term, "opening once more finds the same"
            recoveries += 1
    assert recoveries >= 40


def test_a_crash_before_there_is_a_journal_leaves_a_usable_folder() -> None:
    for number in range(1, 6):
        for policy in CrashPolicy:
            votes = Votes()
            votes.disk.crash_after = number
            with pytest.raises(PowerLost):
                votes.run()
            votes.disk.crash(policy)
            if not Journal.exists(votes.disk):
                votes.run()
                assert votes.durable == ROUNDS


def test_a_failed_sync_of_the_new_file_leaves_the_old_one_in_place() -> None:
    votes = Votes()
    votes.run()
    durable = votes.durable
    votes.disk.fail_next_sync()
    try:
        votes.begin_rewrite()
    finally:
        votes.later.play()
    assert len(votes.errors) == 1
    assert votes.durable == durable
    votes.disk.crash(CrashPolicy.DROP_UNSYNCED)
    votes.reopen()
    assert votes.term == durable


def test_a_failed_sync_of_the_folder_is_reported() -> None:
    votes = Votes()
    votes.run()
    votes.begin_rewrite()
    durable = votes.durable
    votes.disk.fail_next_sync()
    votes.later.play()
    votes.later.play()
    assert len(votes.errors) == 1
    assert votes.durable == durable
    votes.disk.crash(CrashPolicy.DROP_UNSYNCED)
    votes.reopen()
    assert votes.term >= durable


def test_an_interrupted_rewrite_does_not_block_the_next() -> None:
    votes = Votes()
    votes.run()
    votes.begin_rewrite()
    votes.disk.crash(CrashPolicy.KEEP_ALL)
    votes.reopen()
    votes.saved = votes.term
    votes.save(ROUNDS)
    assert votes.errors == []
    assert votes.durable == votes.saved


@pytest.mark.requirement("LOG-4")
def test_write_now_overtakes_a_rewrite_in_progress() -> None:
    for plays in (0, 1, 2):
        votes = Votes()
        votes.run()
        votes.begin_rewrite()
        for _ in range(plays):
            votes.later.play()
        votes.journal.add(StateSaved(group="a", term=100, vote=2))
        votes.journal.write_now()
        while votes.later.waiting:
            votes.later.play()  # the rewrite ends, too late to matter
        votes.disk.crash(CrashPolicy.DROP_UNSYNCED)
        votes.reopen()
        assert votes.term == 100


@pytest.mark.requirement("LOG-4")
def test_write_now_overtakes_a_round_in_progress() -> None:
    for seed in range(10):
        for number in range(1, 6):
            votes = Votes(seed)
            votes.run()
            votes.begin()
            votes.journal.add(StateSaved(group="a", term=100, vote=2))
            votes.disk.crash_after = votes.disk.operations + number
            with pytest.raises(PowerLost):
                votes.journal.write_now()
            votes.disk.crash(CrashPolicy.TORN)
            votes.reopen()
            assert votes.term >= votes.durable


@pytest.mark.requirement("LOG-4")
def test_a_rename_not_yet_durable_when_the_process_died_is_durable_after_the_restart() -> None:
    votes = Votes()
    votes.run()
    votes.begin_rewrite()
    votes.later.play()  # renamed; the folder's sync is in progress
    votes.disk.kill()
    votes.reopen()
    votes.saved = votes.term
    votes.save(1)
    durable = votes.durable
    votes.disk.crash(CrashPolicy.DROP_UNSYNCED)
    votes.reopen()
    assert votes.term >= durable, "a vote that was durable is forgotten"
