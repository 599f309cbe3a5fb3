"""Share groups keep their promises under any order of what can happen."""

from math import ceil

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaesque.machines.groups.consumer_commands import JOINING
from kafkaesque.machines.groups.group_commands import TopicPartition
from kafkaesque.machines.groups.group_errors import FencedMember
from kafkaesque.machines.groups.groups import Groups
from kafkaesque.machines.groups.share_commands import ShareTold
from kafkaesque.machines.groups.share_group import ShareGroup
from tests.machines.consumer_desk import Reader
from tests.machines.group_desk import GROUP
from tests.machines.planted_stories import notices
from tests.machines.share_group_desk import ShareDesk, Sharer
from tests.mutants.mutation import Mutant
from tests.mutants.planted_shares import SHARE_MUTANTS

SHARERS = 6
numbers = st.integers(0, SHARERS - 1)
WISHES = (
    frozenset({"orders"}),
    frozenset({"orders", "payments"}),
    frozenset({"payments", "nowhere"}),
)


class ShareModel(RuleBasedStateMachine):
    """Members that come, go and miss answers, against one group."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = ShareDesk(orders=4, payments=2)
        self.sharers = [Sharer(f"s{n}") for n in range(SHARERS)]
        self.births = 0

    @property
    def group(self) -> ShareGroup | None:
        found = self.desk.machine.group(GROUP)
        return found if isinstance(found, ShareGroup) else None

    def send(self, sharer: Sharer, *, is_lost: bool = False) -> None:
        group, epoch = self.group, sharer.epoch
        member = None if group is None else group.members.get(sharer.member_id)
        answer = self.desk.beat(sharer, is_lost=is_lost)
        if not isinstance(answer, ShareTold):
            is_known = member is not None and epoch in (member.epoch, member.previous_epoch)
            assert epoch != JOINING
            assert not is_known, "refused without need"
            return
        after = self.desk.shares.members[sharer.member_id]
        assert answer.epoch == after.epoch == self.desk.shares.epoch
        assert after.assigned == after.target, "it reads its target at once"
        if epoch == JOINING:
            assert answer.assigned is not None, "a joining member gets its whole assignment"
        elif answer.assigned is not None and member is not None and epoch == member.epoch:
            assert answer.assigned != member.assigned, "told what it knows"
        if not is_lost:
            assert sharer.reads == after.assigned, "it has missed what it is to read"
        self._check_targets()

    def _check_targets(self) -> None:
        members = self.desk.shares.members.values()
        covered = set[TopicPartition]()
        for name, topic in self.desk.topics.items():
            able = [one for one in members if name in one.names]
            for index in range(topic.partitions):
                place = (topic.topic_id, index)
                readers = [one for one in members if place in one.target]
                assert bool(readers) == bool(able)
                assert len(readers) <= ceil(len(able) / topic.partitions)
                covered |= {place} if readers else set()
        for member in members:
            assert member.target <= self.desk.places(*member.names)
            has_any = any(name in self.desk.topics for name in member.names)
            assert bool(member.target) == has_any
        if len({one.names for one in members}) == 1:
            loads = [len(one.target) for one in members]
            assert max(loads) - min(loads) <= 1
            assert sum(loads) == (max(len(covered), len(loads)) if covered else 0)

    @rule(number=numbers, is_lost=st.booleans())
    def heartbeat(self, number: int, is_lost: bool) -> None:
        self.send(self.sharers[number], is_lost=is_lost)

    @rule(turns=st.lists(st.tuples(numbers, st.booleans()), min_size=4, max_size=16))
    def some_go_on(self, turns: list[tuple[int, bool]]) -> None:
        for number, is_lost in turns:
            self.send(self.sharers[number], is_lost=is_lost)

    @rule(number=numbers, names=st.sampled_from(WISHES))
    def want_something_else(self, number: int, names: frozenset[str]) -> None:
        sharer = self.sharers[number]
        sharer.names, sharer.must_say_all = names, True
        self.send(sharer)

    @rule(number=numbers)
    def be_far_behind(self, number: int) -> None:
        sharer = self.sharers[number]
        member = None if self.group is None else self.group.members.get(sharer.member_id)
        if member is not None and member.previous_epoch > 1:
            answer = self.desk.beat(sharer, member.previous_epoch - 1)
            assert isinstance(answer, FencedMember)

    @rule(number=numbers)
    def leave_group(self, number: int) -> None:
        self.desk.depart(self.sharers[number])

    @rule(number=numbers)
    def die_and_come_back(self, number: int) -> None:
        self.births += 1
        self.sharers[number].member_id = f"s{number}-{self.births}"
        self.sharers[number].forget()

    @rule(ms=st.sampled_from([500, 3_000, 7_000]))
    def wait_a_while(self, ms: int) -> None:
        self.desk.pass_ms(ms)

    @rule()
    def restart(self) -> None:
        self.desk.restart()

    @rule(number=numbers, kept=st.integers(0, 6))
    def crash_in_the_middle_of_a_decision(self, number: int, kept: int) -> None:
        before = len(self.desk.written)
        self.send(self.sharers[number], is_lost=True)
        del self.desk.written[before + kept :]
        self.desk.restart()

    @rule(more=st.integers(1, 2), name=st.sampled_from(["orders", "payments"]))
    def add_partitions(self, more: int, name: str) -> None:
        before = len(self.desk.places(name))
        if before < 8:
            self.desk.make_topic(name, before + more)

    @rule()
    def delete_topic(self) -> None:
        self.desk.delete_topic("payments")

    @rule(number=numbers)
    def others_try(self, number: int) -> None:
        """Clients of other kinds of groups change nothing."""
        if self.group is not None:
            before = list(self.desk.machine.records())
            self.desk.join()
            self.desk.send(Reader(self.sharers[number].member_id))
            self.desk.commit(1)
            assert list(self.desk.machine.records()) == before

    @rule()
    def delete_group(self) -> None:
        if self.group is not None and not self.group.members:
            assert self.desk.delete() is None

    @rule()
    def all_go_on_and_everything_is_read(self) -> None:
        for _ in range(16):  # so long that those who do not come back are gone at last
            for sharer in self.sharers:
                self.send(sharer)
            self.desk.pass_ms(1_000)
        self.add_partitions(1, "orders")
        for _ in range(2):
            for sharer in self.sharers:
                self.send(sharer)
        assert self.desk.shares.members.keys() == {one.member_id for one in self.sharers}
        wanted = {name for one in self.sharers for name in one.names if name in self.desk.topics}
        read = frozenset[TopicPartition]().union(*(one.reads for one in self.sharers))
        assert read == (self.desk.places(*wanted) if wanted else frozenset())
        assert {one.epoch for one in self.sharers} == {self.desk.shares.epoch}

    @invariant()
    def nobody_is_ahead_of_the_group(self) -> None:
        members = {} if self.group is None else self.group.members
        for sharer in self.sharers:
            if sharer.member_id in members:
                epoch = members[sharer.member_id].epoch
                assert sharer.epoch <= epoch <= self.desk.shares.epoch

    @invariant()
    def what_is_durable_follows_from_the_records(self) -> None:
        again = Groups(self.desk.config)
        for record in self.desk.written:
            again.apply(record)
        assert sorted(again.records()) == sorted(self.desk.machine.records())
        assert again.members_bytes == self.desk.machine.members_bytes


ShareModel.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestShares = ShareModel.TestCase


@pytest.mark.parametrize("mutant", SHARE_MUTANTS, ids=lambda mutant: mutant.name)
def test_the_model_notices_a_planted_bug(mutant: Mutant) -> None:
    notices(ShareModel, mutant, examples=200, steps=30)
