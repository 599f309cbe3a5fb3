"""The power fails inside every single disk operation of a scripted run, in every possible way.

The run has everything that the two files of a log must agree on: marks between batches, rounds that
overlap with appends, cuts below and above marks, replacements by older and newer terms, trims,
installs and rewrites of the journal, in two groups that share it.
"""

from functools import partial

import pytest

from kafkaesque.config import LogConfig
from kafkaesque.entry import LogStart, TermOpened, Voters
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import StateSaved
from kafkaesque.sim.disk import CrashPolicy, PowerLost
from kafkaesque.types import GroupId, Term
from tests.log.oracle import LogOracle
from tests.log.stores import (
    GROUP,
    JOURNAL_HEADER_BYTES,
    OTHER,
    THEM,
    US,
    AMachine,
    everything,
    journal_bytes,
)

CONFIG = LogConfig(
    segment_bytes_max=400,
    index_interval_bytes=100,
    index_sync_bytes=200,
    indexes_loaded_max=1,
    journal_rewrite_bytes=700,
)
OPENED = TermOpened()
FEWER = Voters(voters=(1, 3))
WAYS = [
    (CrashPolicy.DROP_UNSYNCED, 0),
    (CrashPolicy.KEEP_ALL, 0),
    (CrashPolicy.TORN, 1),
    (CrashPolicy.TORN, 2),
]


class Life:
    """A node's run up to the crash, and what must be true after it."""

    def __init__(self, seed: int) -> None:
        self.machine = AMachine(seed, config=CONFIG)
        self.logs: dict[GroupId, LogOracle] = {}
        self.saved: dict[GroupId, list[Term]] = {GROUP: [], OTHER: []}
        self.durable: dict[GroupId, Term] = {GROUP: 0, OTHER: 0}

    def run(self) -> None:
        self.machine.open()
        self.begin()
        self.change_terms()
        self.cut()
        self.trim()
        self.install()
        self.restart()

    # --- the parts of the run -----------------------------------------------------------------

    def begin(self) -> None:
        a, b = self.create(GROUP), self.create(OTHER)
        self.save(GROUP, 1)
        a.append(OPENED, 2, term=1)
        self.settle()
        self.save(OTHER, 2)
        b.append(OPENED, term=2)
        self.kick()
        a.append(1)  # during a round
        b.append(1, 1)
        a.append(3)
        self.settle()

    def change_terms(self) -> None:
        a, b = self.logs[GROUP], self.logs[OTHER]
        a.append(1, THEM, 2)
        self.kick()
        self.save(GROUP, 3)
        a.append(1, OPENED, 1, term=3)
        b.append(2, FEWER)
        self.play()
        b.append(1, OPENED, US, 1, term=4)
        self.settle()
        for _ in range(3):
            a.append(2)
            b.append(1)
            self.settle()

    def cut(self) -> None:
        a, b = self.logs[GROUP], self.logs[OTHER]
        a.append(OPENED, 1, term=4)
        self.settle()
        a.truncate(2)  # the term that was opened last, and its batch
        a.append(2)  # by one of the older term
        b.truncate(4)  # below voters, terms and the synced point
        self.play()
        b.append(OPENED, 2, term=5)
        self.settle()
        self.save(GROUP, 5)
        a.truncate(7)  # whole segments, a term and voters
        a.append(OPENED, THEM, 1, 1, term=6)
        self.kick()
        a.truncate(1)  # again, while the cut waits
        self.settle()
        a.append(2, 2)
        self.settle()

    def trim(self) -> None:
        a, b = self.logs[GROUP], self.logs[OTHER]
        for _ in range(3):
            a.append(3)
            self.settle()
        a.trim(a.end_offset - 5)
        a.append(1)
        self.play()
        b.append(2, hole=4)
        self.settle()
        b.trim(b.end_offset - 1)
        self.settle()
        a.trim(a.end_offset - 2)
        a.append(OPENED, 1, term=7)
        self.settle()

    def install(self) -> None:
        a, b = self.logs[GROUP], self.logs[OTHER]
        marks_before = b.end - b.end_offset + 2
        offset = b.end_offset + 20
        b.install(LogStart(offset=offset, marks_before=marks_before, prev_term=8, voters=US))
        a.append(2)
        self.play()
        b.append(1)
        b.append(OPENED, 2, term=9)
        self.settle()
        self.save(OTHER, 9)
        b.append(2, 2)
        b.truncate(1)
        self.settle()

    def restart(self) -> None:
        disk = self.machine.disk
        power_ends_at = disk.crash_after
        disk.kill()
        disk.crash_after = power_ends_at
        self.machine.open()
        for group, oracle in self.logs.items():
            oracle.adopt(self.machine.store.open_log(group))
        for term in range(10, 14):
            self.save(GROUP, term)
            self.logs[GROUP].append(OPENED, 1, term=term)
            self.logs[OTHER].append(1)
            self.settle()

    # --- steps ---------------------------------------------------------------------------------

    def create(self, group: GroupId) -> LogOracle:
        oracle = self.logs[group] = LogOracle(self.machine.store.create_log(group, US))
        return oracle

    def save(self, group: GroupId, term: Term) -> None:
        """Vote in a term, like a replica; the vote takes effect when the round is done."""
        self.saved[group].append(term)
        self.machine.store.journal.add(StateSaved(group=group, term=term, vote=term % 3))
        done = partial(self.durable.__setitem__, group, term)
        self.machine.store.flusher.after_next_round(done)

    def kick(self) -> None:
        self.machine.begin_round()

    def play(self) -> None:
        self.machine.store.flusher.kick()
        self.machine.end_round()

    def settle(self) -> None:
        self.machine.settle()
        for oracle in self.logs.values():
            oracle.note_settled()
            oracle.check()

    # --- after the crash -----------------------------------------------------------------------

    def recover(self) -> None:
        """Open everything like a node at its start, and check what it finds."""
        self.machine.open()
        groups = self.machine.store.journal.groups
        for group, oracle in self.logs.items():
            if group not in groups:
                oracle.adopt_new(self.machine.store.create_log(group, US))
                assert self.durable[group] == 0
                continue
            state = groups[group].hard_state
            assert state.term >= self.durable[group], "a term that took effect is remembered"
            assert state.term in [0, *self.saved[group]]
            assert state.vote == (state.term % 3 if state.term else None)
            oracle.adopt(self.machine.store.open_log(group))
            assert not groups[group].is_recovering, "nothing was damaged"

    def recover_again(self, policy: CrashPolicy) -> None:
        before = [(oracle.start, oracle.entries) for oracle in self.logs.values()]
        self.machine.disk.crash(policy)
        self.recover()
        assert [(o.start, everything(o.log)) for o in self.logs.values()] == before

    def go_on(self) -> None:
        for oracle in self.logs.values():
            oracle.append(1)
            oracle.append(OPENED, 2, term=oracle.term + 1)
        self.settle()
        for oracle in self.logs.values():
            assert oracle.log.stable == oracle.end
        assert self.machine.failures == []


def operations() -> int:
    life = Life(0)
    life.run()
    return life.machine.disk.operations


def test_without_a_crash_the_run_covers_everything_that_it_should() -> None:
    life = Life(0)
    life.run()
    life.go_on()
    assert 200 <= life.machine.disk.operations <= 500
    assert life.logs[GROUP].start.offset > 0
    assert life.logs[OTHER].start.prev_term == 8
    assert len(list(life.logs[GROUP].log.segments.each_info())) > 1
    assert life.durable == {GROUP: 13, OTHER: 9}
    first_round = journal_bytes(life.machine.disk)[JOURNAL_HEADER_BYTES:][12:20]
    assert int.from_bytes(first_round, "big") > 1, "the journal was rewritten"


@pytest.mark.requirement("LOG-1")
@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0].name}-{way[1]}")
def test_a_crash_inside_any_operation_loses_nothing_reported_stable(
    way: tuple[CrashPolicy, int],
) -> None:
    policy, seed = way
    recoveries = 0
    for number in range(1, operations() + 1):
        life = Life(seed)
        life.machine.disk.crash_after = number
        with pytest.raises(PowerLost):
            life.run()
        life.machine.disk.crash(policy)
        if not Journal.exists(life.machine.disk):
            assert life.logs == {}
            continue
        life.recover()
        life.recover_again(policy)
        life.go_on()
        life.recover_again(CrashPolicy.DROP_UNSYNCED)
        recoveries += 1
    assert recoveries >= 200, "four ways make 800 recoveries"
