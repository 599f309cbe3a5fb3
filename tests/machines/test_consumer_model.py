"""Groups whose coordinator assigns keep their promises under any order of events."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
)

from kafkaesque.machines.groups.consumer_commands import JOINING, ConsumerTold
from kafkaesque.machines.groups.consumer_group import ConsumerGroup
from kafkaesque.machines.groups.group_commands import Committed
from kafkaesque.machines.groups.groups import Groups
from tests.machines.consumer_desk import ConsumerDesk, Reader
from tests.machines.group_desk import GROUP
from tests.machines.planted_stories import notices
from tests.mutants.mutation import Mutant
from tests.mutants.planted_consumers import CONSUMER_MUTANTS

READERS = 4
numbers = st.integers(0, READERS - 1)
WISHES = (
    (frozenset({"orders"}), ""),
    (frozenset({"orders", "payments"}), ""),
    (frozenset({"payments", "nowhere"}), ""),
    (frozenset[str](), "(ord|pay).*"),
)


class ConsumerModel(RuleBasedStateMachine):
    """Readers, some with instance ids, against one group."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = ConsumerDesk(orders=5, payments=3)
        self.readers = [
            Reader(member_id=f"r{n}", instance=f"i{n}" if n % 2 else None) for n in range(READERS)
        ]
        self.births = 0

    @property
    def group(self) -> ConsumerGroup | None:
        found = self.desk.machine.group(GROUP)
        return found if isinstance(found, ConsumerGroup) else None

    def send(self, reader: Reader, *, is_lost: bool = False) -> None:
        group = self.group
        member = group.members.get(reader.member_id) if group is not None else None
        owned, epoch = reader.owned, reader.epoch
        answer = self.desk.send(reader, is_lost=is_lost)
        if isinstance(answer, ConsumerTold) and answer.assigned is not None and epoch != JOINING:
            assert member is not None
            after = self.desk.consumers.members[reader.member_id]
            kept = (owned & after.target & member.assigned) - member.revoking
            assert kept <= answer.assigned, "asked to stop reading an assigned partition"

    @rule(number=numbers, is_lost=st.booleans())
    def heartbeat(self, number: int, is_lost: bool) -> None:
        self.send(self.readers[number], is_lost=is_lost)

    @rule(turns=st.lists(st.tuples(numbers, st.booleans()), min_size=4, max_size=16))
    def some_run_and_not_all_obey(self, turns: list[tuple[int, bool]]) -> None:
        for number, obeys in turns:
            self.send(self.readers[number])
            if obeys:
                self.readers[number].obey()
            self.each_partition_is_held_by_one_member_at_most()
            self.members_read_nothing_that_they_do_not_hold()

    @rule(number=numbers, wishes=st.sampled_from(WISHES), assignor=st.sampled_from(["", "range"]))
    def want_something_else(
        self, number: int, wishes: tuple[frozenset[str], str], assignor: str
    ) -> None:
        reader = self.readers[number]
        reader.names, reader.pattern = wishes
        reader.assignor, reader.must_say_all = assignor, True
        self.send(reader)

    @rule(number=numbers, will_be_back=st.booleans())
    def leave_group(self, number: int, will_be_back: bool) -> None:
        reader = self.readers[number]
        will_be_back = will_be_back and reader.instance is not None
        self.desk.leave_group(reader, will_be_back=will_be_back)

    @rule(number=numbers)
    def die_and_return(self, number: int) -> None:
        reader = self.readers[number]
        self.births += 1
        reader.member_id = f"r{number}-{self.births}"
        reader.forget()

    @rule(number=numbers, lag=st.integers(-1, 2))
    def commit_offset(self, number: int, lag: int) -> None:
        reader, group = self.readers[number], self.group
        epoch = reader.epoch - lag
        answer = self.desk.commit_as(reader, epoch)
        if isinstance(answer, Committed) and epoch >= 0:
            assert group is not None
            assert group.members[reader.member_id].epoch == epoch, "an old epoch has committed"

    @rule(ms=st.sampled_from([500, 3_000, 7_000]))
    def wait_a_while(self, ms: int) -> None:
        self.desk.pass_ms(ms)

    @rule()
    def restart(self) -> None:
        self.desk.restart()
        for reader in self.readers:
            reader.must_say_all = True  # its connection is gone

    @rule(more=st.integers(1, 2), name=st.sampled_from(["orders", "payments"]))
    def add_partitions(self, more: int, name: str) -> None:
        before = len(self.desk.places(name))
        if before < 8:
            self.desk.make_topic(name, before + more)

    @rule()
    def delete_topic(self) -> None:
        self.desk.delete_topic("payments")

    @rule(number=numbers, wishes=st.sampled_from(WISHES))
    def all_run_and_the_group_settles(
        self, number: int, wishes: tuple[frozenset[str], str]
    ) -> None:
        self._come_to_rest(16)  # long enough for members that do not return to be gone at last
        self.want_something_else(number, wishes, "")
        self._come_to_rest(6)
        self.add_partitions(1, "orders")
        self._come_to_rest(6)

    def _come_to_rest(self, seconds: int) -> None:
        for _ in range(seconds):
            for reader in self.readers:
                self.send(reader)
                reader.obey()
            self.desk.pass_ms(1_000)
        group = self.desk.consumers
        assert group.state == "Stable"
        wanted = {
            (topic.topic_id, index)
            for name, topic in self.desk.topics.items()
            for index in range(topic.partitions)
            if group.reads(name)
        }
        owned = [place for reader in self.readers for place in reader.owned]
        assert sorted(owned) == sorted(wanted), "each partition has one reader"

    @invariant()
    def each_partition_is_held_by_one_member_at_most(self) -> None:
        if self.group is not None:
            members = self.group.members.values()
            held = [place for m in members for place in (*m.assigned, *m.revoking)]
            assert len(held) == len(set(held))

    @invariant()
    def members_read_nothing_that_they_do_not_hold(self) -> None:
        for reader in self.readers:
            member = self.group.members.get(reader.member_id) if self.group is not None else None
            if member is not None and reader.epoch > JOINING:
                assert reader.owned <= member.assigned | member.revoking

    @invariant()
    def what_is_durable_follows_from_the_records(self) -> None:
        again = Groups(self.desk.config)
        for record in self.desk.written:
            again.apply(record)
        assert sorted(again.records()) == sorted(self.desk.machine.records())


ConsumerModel.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestConsumers = ConsumerModel.TestCase


@pytest.mark.parametrize("mutant", CONSUMER_MUTANTS, ids=lambda mutant: mutant.name)
def test_the_model_notices_a_planted_bug(mutant: Mutant) -> None:
    notices(ConsumerModel, mutant, examples=200, steps=30)
