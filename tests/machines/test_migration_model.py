"""Members of both kinds share one group under any order of events."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaesque.machines.groups.consumer_commands import JOINING
from kafkaesque.machines.groups.group import ClassicGroup
from kafkaesque.machines.groups.group_commands import Committed
from kafkaesque.machines.groups.groups import Groups
from kafkaesque.machines.groups.mixed_group import MixedGroup
from tests.machines.consumer_desk import Reader
from tests.machines.group_desk import GROUP
from tests.machines.mixed_desk import MixedDesk, Named, OldReader
from tests.machines.planted_stories import notices
from tests.mutants.mutation import Mutant
from tests.mutants.planted_migration import MIGRATION_MUTANTS

OLD, NEW = 3, 2
old_numbers, new_numbers = st.integers(0, OLD - 1), st.integers(0, NEW - 1)


class MigrationModel(RuleBasedStateMachine):
    """Classic readers, cooperative or eager, and new ones; all of them come and go."""

    is_cooperative = True

    def __init__(self) -> None:
        super().__init__()
        self.desk = MixedDesk(orders=5, payments=2)
        topics = ("orders", "payments")
        self.old = [OldReader(f"o{n}", self.is_cooperative, topics) for n in range(OLD)]
        self.new = [Reader(f"n{n}", names=frozenset(topics)) for n in range(NEW)]
        self.births = 0

    @rule(number=old_numbers, times=st.integers(1, 4))
    def a_classic_one_runs(self, number: int, times: int) -> None:
        for _ in range(times):
            self.desk.go_on(self.old[number])
            self.no_partition_has_two_readers()

    @rule(number=new_numbers, is_lost=st.booleans(), obeys=st.booleans())
    def a_new_one_runs(self, number: int, is_lost: bool, obeys: bool) -> None:
        reader = self.new[number]
        self.desk.send(reader, is_lost=is_lost)
        if obeys and not is_lost:
            reader.obey()

    @rule(seconds=st.integers(1, 6))
    def all_run(self, seconds: int) -> None:
        for _ in range(seconds):
            for old in self.old:
                self.desk.go_on(old)
            for new in self.new:
                self.desk.send(new)
                new.obey()
            self.no_partition_has_two_readers()
            self.desk.pass_ms(500)

    @rule(number=old_numbers)
    def a_classic_one_leaves(self, number: int) -> None:
        self.desk.depart(self.old[number])

    @rule(number=new_numbers)
    def a_new_one_leaves(self, number: int) -> None:
        reader = self.new[number]
        self.desk.leave_group(reader)
        self.births += 1
        reader.member_id = f"n{number}-{self.births}"

    @rule(number=old_numbers, lag=st.integers(0, 2))
    def a_classic_one_commits(self, number: int, lag: int) -> None:
        reader = self.old[number]
        generation = reader.generation - lag
        if not reader.member_id or generation < 0:
            return
        answer = self.desk.commit(1, reader.member_id, generation)
        if isinstance(answer, Committed):
            group = self.desk.machine.group(GROUP)
            if isinstance(group, MixedGroup):
                assert group.members[reader.member_id].epoch == generation
            elif isinstance(group, ClassicGroup):
                assert group.generation.number == generation

    @rule()
    def restart(self) -> None:
        self.desk.restart()
        for old in self.old:
            old.waits = None  # its connection is gone; it asks again
            old.is_member = False
        for new in self.new:
            new.must_say_all = True

    @rule(only_old=st.booleans())
    def all_come_to_rest(self, only_old: bool) -> None:
        if only_old:
            for number in range(NEW):
                self.a_new_one_leaves(number)
        new = [] if only_old else self.new
        for _ in range(90):
            for old in self.old:
                self.desk.go_on(old)
            for one in new:
                self.desk.send(one)
                one.obey()
            self.no_partition_has_two_readers()
            self.desk.pass_ms(500)
        group = self.desk.machine.group(GROUP)
        assert isinstance(group, ClassicGroup if only_old else MixedGroup)
        assert group.state == "Stable"
        read = sorted(place for _, places in self.read() for place in places)
        assert read == sorted(self.desk.named(self.desk.places())), "each has one reader"

    def read(self) -> list[tuple[str, Named]]:
        """The partitions read by each reader that may think that it is a member."""
        group = self.desk.machine.group(GROUP)
        members = {} if group is None else group.members
        old = [(one.name, one.owned) for one in self.old if one.member_id in members]
        fresh = [one for one in self.new if one.member_id in members and one.epoch > JOINING]
        return old + [(one.member_id, self.desk.named(one.owned)) for one in fresh]

    @invariant()
    def no_partition_has_two_readers(self) -> None:
        found = [place for _, places in self.read() for place in places]
        assert len(found) == len(set(found)), self.read()

    @invariant()
    def what_is_durable_follows_from_the_records(self) -> None:
        again = Groups(self.desk.config)
        for record in self.desk.written:
            again.apply(record)
        assert sorted(again.records()) == sorted(self.desk.machine.records())


class EagerModel(MigrationModel):
    """The same with readers that stop for every rebalance."""

    is_cooperative = False


MigrationModel.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
EagerModel.TestCase.settings = MigrationModel.TestCase.settings
TestCooperative = MigrationModel.TestCase
TestEager = EagerModel.TestCase


@pytest.mark.parametrize("mutant", MIGRATION_MUTANTS, ids=lambda mutant: mutant.name)
def test_the_model_notices_a_planted_bug(mutant: Mutant) -> None:
    notices(MigrationModel, mutant, examples=60, steps=25)
