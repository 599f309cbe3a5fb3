"""Leaders that come and go, and lose the end of their logs, agree on what is done."""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.queues.queue_errors import FencedGeneration, FencedTerm
from kafkaesque.machines.queues.share_commands import DeleteShareGroup, SetStart, Written
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_states import ShareStates
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from tests.machines.share_desk import GROUP, LIMITS, PLACE, Store
from tests.machines.share_state_desk import Desk

LOG_END = 1_000


@dataclass
class Leader:
    """A leader of the data partition, which may not know that it was replaced."""

    term: int
    state: SharePartition
    unwritten: set[int]


class ShareStatesModel(RuleBasedStateMachine):
    """One data partition, its leaders old and new, and one group."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.term = 0
        self.leaders: list[Leader] = []
        self.done: set[int] = set()
        """What a client was told is done, and which no later term has used again."""
        self.start_set = 0

    @rule(cut=st.sampled_from([LOG_END, LOG_END, 3, 20, 45]))
    def a_leader_comes(self, cut: int) -> None:
        """The log may have lost its end: records from `cut` on are others now."""
        self.term += 1
        records = self.desk.adopt(self.term, cut)
        self.done = {n for n in self.done if n < cut}
        if self.desk.starts():
            state = SharePartition.restored(PLACE, GROUP, records, LIMITS)
        else:
            state = SharePartition(PLACE, GROUP, 0, LIMITS, 7)
        store = Store()
        store.write(records)
        known = set(range(state.start)) | (store.done().keys() if records else set())
        assert known >= self.done, "a confirmed acknowledgement was lost"
        assert all(n < cut for n in known), "something is done that nobody has seen"
        assert state.next <= cut
        self.leaders.append(Leader(self.term, state, set()))

    @precondition(lambda self: self.leaders)
    @rule(data=st.data(), kind=st.sampled_from([Ack.ACCEPT, Ack.REJECT, Ack.RELEASE]))
    def a_member_settles(self, data: st.DataObject, kind: Ack) -> None:
        leader = data.draw(st.sampled_from(self.leaders[-2:]))
        acquired = leader.state.take("a", [(0, LOG_END - 1)], data.draw(st.integers(1, 20)), 0)
        for each in acquired:
            first = data.draw(st.integers(each.first, each.last))
            last = data.draw(st.integers(first, each.last))
            leader.state.settle("a", [AckBatch(first, last, (kind,))], 0)
            if kind is not Ack.RELEASE:
                leader.unwritten |= set(range(first, last + 1))

    @precondition(lambda self: self.leaders)
    @rule(data=st.data())
    def a_leader_writes(self, data: st.DataObject) -> None:
        leader = data.draw(st.sampled_from(self.leaders[-2:]))
        answer = self.desk.write(leader.state, leader.term)
        if leader.term < self.term:
            assert isinstance(answer, FencedTerm), "a leader that was replaced has written"
        if isinstance(answer, Written):
            assert self.desk.was_one_batch
            self.done |= leader.unwritten
            leader.unwritten = set()
        else:
            assert isinstance(answer, FencedTerm | FencedGeneration)
            self.leaders.remove(leader)

    @rule(offset=st.integers(0, 60))
    def an_administrator_sets_the_start(self, offset: int) -> None:
        answer = self.desk.ask(SetStart(place=PLACE, group=GROUP, offset=offset))
        assert not isinstance(answer, KafkaesqueError)
        self.done = set(range(offset))
        assert self.desk.starts() == {PLACE: offset}

    @rule()
    def an_administrator_deletes_the_group(self) -> None:
        self.desk.ask(DeleteShareGroup(group=GROUP))
        assert self.desk.starts() == {}
        self.done = set()
        self.leaders = []  # they are told, as nobody may use the group then

    @rule(data=st.data())
    def the_machine_is_restored_from_a_snapshot_and_the_rest_of_the_log(
        self, data: st.DataObject
    ) -> None:
        at = data.draw(st.integers(0, len(self.desk.log)))
        early = ShareStates(self.desk.limits)
        for record in self.desk.log[:at]:
            early.apply(record)
        late = ShareStates(self.desk.limits)
        for record in (*early.records(), *self.desk.log[at:]):
            late.apply(record)
        assert sorted(late.records()) == sorted(self.desk.machine.records())
        assert late.state_bytes == self.desk.machine.state_bytes
        self.desk.machine = late

    @invariant()
    def the_state_follows_from_the_records(self) -> None:
        again = self.desk.replayed()
        assert sorted(again.records()) == sorted(self.desk.machine.records())


TestShareStatesModel = ShareStatesModel.TestCase
TestShareStatesModel.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
