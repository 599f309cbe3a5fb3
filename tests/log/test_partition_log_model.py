"""A log against a plain list of entries, under random changes, rounds and crashes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkaesque.entry import LogStart, TermOpened, Voters
from kafkaesque.sim.disk import CrashPolicy
from kafkaesque.types import Term
from tests.log.oracle import LogOracle
from tests.log.stores import GROUP, THEM, US, ANode

FEWER = Voters(voters=(1, 3))

GAPS_ARE_CLOSED = True
"""Whether what other tests here expect to fail (`xfail`) works; until then the model avoids it."""

counts = st.lists(st.integers(1, 4), min_size=1, max_size=3)


class LogAgainstAList(RuleBasedStateMachine):
    """The log always agrees with its oracle."""

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.node = ANode(seed)
        self.oracle = LogOracle(self.node.store.create_log(GROUP, US))
        self.term: Term = 0
        self.is_cutting = False
        self.open_term(1, [])

    @rule(sizes=counts)
    def append_batches(self, sizes: list[int]) -> None:
        self._settle_if_cutting()
        self.oracle.append(*sizes)

    @rule(size=st.integers(1, 3), hole=st.integers(1, 5))
    @precondition(lambda self: GAPS_ARE_CLOSED or self.oracle.log.is_settled)
    def append_behind_a_hole(self, size: int, hole: int) -> None:
        self.oracle.append(size, hole=hole)

    @rule(skipped=st.integers(1, 2), sizes=st.lists(st.integers(1, 3), max_size=2))
    def open_term(self, skipped: int, sizes: list[int]) -> None:
        self._settle_if_cutting()
        self.term += skipped
        self.oracle.append(TermOpened(), *sizes, term=self.term)

    @rule(who=st.sampled_from([THEM, FEWER]), before=counts)
    def change_voters(self, who: Voters, before: list[int]) -> None:
        self._settle_if_cutting()
        self.oracle.append(*before, who)

    def _settle_if_cutting(self) -> None:
        if self.is_cutting and not GAPS_ARE_CLOSED:
            self.settle()

    @rule(back=st.integers(0, 6))
    def truncate(self, back: int) -> None:
        self.is_cutting = True
        self.oracle.truncate(back)

    @rule(share=st.floats(0, 1))
    def trim(self, share: float) -> None:
        log = self.oracle.log
        synced = self.node.store.journal.groups[GROUP].synced
        if log.stable >= log.start.index and (GAPS_ARE_CLOSED or synced is not None):
            first, limit = log.start.first_offset, log.offset_at(log.stable)
            self.oracle.trim(first + int(share * (limit - first)))

    @rule(skipped=st.integers(0, 20), marks=st.integers(0, 2))
    def install(self, skipped: int, marks: int) -> None:
        self.is_cutting = True
        oracle = self.oracle
        offset = max(oracle.start.offset, oracle.end_offset - 10) + skipped
        before = oracle.end - oracle.end_offset + marks
        oracle.install(
            LogStart(offset=offset, marks_before=before, prev_term=self.term, voters=THEM)
        )

    @rule()
    def kick(self) -> None:
        self.node.store.flusher.kick()

    @rule()
    @precondition(lambda self: self.node.later.waiting)
    def end_round(self) -> None:
        self.node.end_round()
        self.oracle.note_settled()

    @rule()
    def settle(self) -> None:
        self.is_cutting = False
        self.node.settle()
        assert self.oracle.log.stable == self.oracle.end
        self.oracle.note_settled()

    @rule(policy=st.sampled_from(CrashPolicy))
    def crash(self, policy: CrashPolicy) -> None:
        self.is_cutting = False
        self.node.crash(policy)
        store = self.node.store
        if GROUP in store.journal.groups:
            self.oracle.adopt(store.open_log(GROUP))
            assert not store.journal.groups[GROUP].is_recovering, "nothing was damaged"
        else:
            self.oracle.adopt_new(store.create_log(GROUP, US))

    @invariant()
    def the_log_is_what_the_list_is(self) -> None:
        self.oracle.check()
        assert self.node.failures == []


TestLogAgainstAList = pytest.mark.requirement("LOG-4")(LogAgainstAList.TestCase)
TestLogAgainstAList.settings = settings(max_examples=200, stateful_step_count=40)
