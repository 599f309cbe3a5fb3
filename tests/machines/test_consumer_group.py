"""Groups whose coordinator assigns: who is admitted, who is fenced, and what is never lost."""

import pytest

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.groups.consumer_commands import AWAY, ConsumerTold
from kafkaesque.machines.groups.group_commands import (
    Commit,
    Committed,
    Fetched,
    Identity,
    Leave,
    Left,
    TransactionalCommit,
)
from kafkaesque.machines.groups.group_errors import (
    FencedInstance,
    FencedMember,
    GroupChangesKind,
    GroupFull,
    IllegalGeneration,
    InvalidExpression,
    StaleMember,
    UnknownMember,
    UnreleasedInstance,
    UnsupportedAssignor,
)
from tests.machines.consumer_desk import CONFIG, REBALANCE_MS, ConsumerDesk, Reader
from tests.machines.group_desk import GROUP, PLACE

MEMBERS = 10
PARTITIONS = 1_000


def test_the_first_member_gets_everything_at_once() -> None:
    desk = ConsumerDesk()
    one = Reader("one")
    answer = desk.send(one)
    assert isinstance(answer, ConsumerTold)
    assert (answer.epoch, answer.assigned) == (1, desk.places())
    assert desk.consumers.state == "Stable"


def test_a_partition_is_reassigned_only_when_its_reader_has_revoked_it() -> None:
    desk = ConsumerDesk()
    one, two = Reader("one"), Reader("two")
    desk.settle(one)
    desk.send(two)
    assert two.told == frozenset()
    desk.send(one)
    lost = one.owned - one.told
    assert len(lost) == 2
    desk.send(two)
    assert two.told == frozenset(), "its reader has not reported that it stopped"
    one.obey()
    desk.send(one)
    desk.send(two)
    assert two.told == lost


def test_a_revoking_member_may_commit_in_its_old_epoch_until_it_is_done() -> None:
    desk = ConsumerDesk()
    one, two = Reader("one"), Reader("two")
    desk.settle(one)
    desk.send(two)
    desk.send(one)
    assert one.epoch == 1
    assert isinstance(desk.commit_as(one, 1), Committed)
    one.obey()
    desk.send(one)
    assert one.epoch == 2
    assert isinstance(desk.commit_as(one, 1), StaleMember)
    assert isinstance(desk.commit_as(one, 2), Committed)


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    desk = ConsumerDesk()
    one, two = Reader("one"), Reader("two")
    desk.settle(one)
    desk.send(two)
    for _ in range(REBALANCE_MS // 1_000):
        desk.send(one)
        desk.send(two)
        desk.pass_ms(1_000)
    assert list(desk.consumers.members) == ["two"]
    desk.send(two)
    assert two.told == desk.places()
    assert isinstance(desk.send(one), UnknownMember)


def test_a_silent_member_is_removed_and_others_take_over() -> None:
    desk = ConsumerDesk()
    one, two = Reader("one"), Reader("two")
    desk.settle(one, two)
    for _ in range(11):
        desk.pass_ms(1_000)
        desk.send(two)
    assert two.told == desk.places()
    assert isinstance(desk.commit_as(one, one.epoch), UnknownMember)


def test_ten_members_with_1000_partitions_lose_none_that_they_keep() -> None:
    desk = ConsumerDesk(orders=PARTITIONS)
    readers = [Reader(f"r{n}") for n in range(MEMBERS - 1)]
    desk.settle(*readers)
    before = {reader.member_id: reader.owned for reader in readers}
    late = Reader("late")
    history: list[tuple[str, frozenset[tuple[bytes, int]]]] = []
    for _ in range(4):
        for reader in (late, *readers):
            desk.send(reader)
            reader.obey()
            history.append((reader.member_id, reader.owned))
    kept = {reader.member_id: before[reader.member_id] & reader.owned for reader in readers}
    for member_id, owned in history:
        assert kept.get(member_id, frozenset()) <= owned, "stopped only to start again"
    assert {len(reader.owned) for reader in (late, *readers)} == {PARTITIONS // MEMBERS}
    assert sum(map(len, kept.values())) == PARTITIONS - PARTITIONS // MEMBERS
    assert desk.consumers.state == "Stable"


def test_a_lost_answer_is_repeated() -> None:
    desk = ConsumerDesk()
    one = Reader("one")
    desk.send(one, is_lost=True)
    assert one.epoch == 0
    desk.send(one)
    assert one.told == desk.places()
    one.obey()
    two = Reader("two")
    desk.send(two)
    desk.send(one)
    one.obey()
    desk.send(one, is_lost=True)
    desk.send(one)
    assert (one.epoch, one.refused) == (2, None)


@pytest.mark.parametrize("epoch", [3, 7])
def test_a_member_with_a_wrong_epoch_is_fenced(epoch: int) -> None:
    desk = ConsumerDesk()
    one = Reader("one")
    desk.settle(one)
    for number in range(3):
        desk.settle(Reader(f"other{number}"), one)
    assert isinstance(desk.send(one, epoch - 2), FencedMember)


def test_an_instance_that_returns_under_another_id_gets_its_old_partitions() -> None:
    desk = ConsumerDesk()
    one, two = Reader("one", instance="a"), Reader("two", instance="b")
    desk.settle(one, two)
    had, epoch = one.owned, desk.consumers.epoch
    desk.leave_group(one, will_be_back=True)
    assert desk.consumers.members["one"].epoch == AWAY
    desk.send(two)
    assert two.told == two.owned
    again = Reader("one-again", instance="a")
    desk.send(again)
    assert (again.told, again.epoch) == (had, epoch)
    assert isinstance(desk.send(Reader("one", instance="a"), epoch), FencedInstance)


def test_an_instance_that_does_not_return_is_removed_when_its_session_ends() -> None:
    desk = ConsumerDesk()
    one, two = Reader("one", instance="a"), Reader("two", instance="b")
    desk.settle(one, two)
    desk.leave_group(one, will_be_back=True)
    for _ in range(11):
        desk.pass_ms(1_000)
        desk.send(two)
    assert two.told == desk.places()


def test_an_instance_id_in_use_is_not_given_to_another_member() -> None:
    desk = ConsumerDesk()
    desk.settle(Reader("one", instance="a"))
    assert isinstance(desk.send(Reader("two", instance="a")), UnreleasedInstance)


def test_an_administrator_removes_an_instance() -> None:
    desk = ConsumerDesk()
    desk.settle(Reader("one", instance="a"))
    asked = (Identity(member_id="", instance_id="a"), Identity(member_id="nobody"))
    command = Leave(group=GROUP, members=asked)
    answer = desk.ask(lambda g, to, now: g.leave(command, to, now)).answer
    assert isinstance(answer, Left)
    assert answer.failures[0] is None
    assert isinstance(answer.failures[1], UnknownMember)
    assert desk.consumers.state == "Empty"


def test_changed_topics_are_noticed_at_the_next_heartbeat() -> None:
    desk = ConsumerDesk()
    one = Reader("one", names=frozenset(), pattern="ord.*")
    desk.settle(one)
    epoch = desk.consumers.epoch
    desk.make_topic("ordinary", 2)
    desk.make_topic("__orders", 1)
    desk.make_topic("payments", 1)
    desk.make_topic("orders", 6)
    desk.send(one)
    assert one.told == desk.places("orders", "ordinary")
    assert one.epoch == epoch + 1
    desk.delete_topic("orders")
    desk.settle(one, rounds=2)
    assert one.owned == desk.places("ordinary")
    desk.make_topic("others", 1)
    desk.send(one)
    assert one.epoch == epoch + 2, "no member wants that one"


def test_a_target_half_lost_in_a_crash_is_computed_again() -> None:
    desk = ConsumerDesk(orders=8)
    one, two = Reader("one"), Reader("two")
    desk.settle(one)
    desk.send(two)
    assert len(desk.written) > 2
    # The record of the new member is lost; that of the other, which is to give up half, is not.
    desk.written = [r for r in desk.written if b"two" not in r.key]
    desk.restart()
    one.must_say_all = True
    desk.settle(one)
    assert one.owned == desk.places()


def test_a_restart_forgets_only_the_time() -> None:
    desk = ConsumerDesk()
    one, two = Reader("one"), Reader("two")
    desk.settle(one, two)
    had = one.owned, two.owned
    desk.pass_ms(9_000)
    desk.restart()
    desk.pass_ms(9_000)
    desk.settle(one, two)
    assert (one.owned, two.owned, desk.consumers.state) == (*had, "Stable")


def test_invalid_assignors_and_patterns_are_refused() -> None:
    desk = ConsumerDesk()
    assert isinstance(desk.send(Reader("one", assignor="best")), UnsupportedAssignor)
    assert isinstance(desk.send(Reader("one", pattern="(")), InvalidExpression)
    assert desk.machine.group(GROUP) is None


def test_the_members_of_a_group_and_the_bytes_of_each_are_limited() -> None:
    desk = ConsumerDesk(GroupConfig(members_max=1, member_bytes_max=100))
    desk.settle(Reader("one"))
    assert isinstance(desk.send(Reader("two")), GroupFull)
    long = Reader("one", epoch=1, names=frozenset({"x" * 100}))
    assert isinstance(desk.send(long), GroupFull)


def test_the_bytes_of_all_members_of_a_group_are_limited() -> None:
    desk = ConsumerDesk(GroupConfig(group_bytes_max=100))
    desk.settle(one := Reader("one", names=frozenset({"x" * 50})))
    assert isinstance(desk.send(Reader("two", names=frozenset({"y" * 50}))), GroupFull)
    one.names, one.must_say_all = frozenset({"x" * 120}), True
    assert isinstance(desk.send(one), GroupFull)


def test_an_empty_group_takes_the_protocol_of_its_next_member() -> None:
    desk = ConsumerDesk()
    one = Reader("one")
    desk.settle(one)
    assert isinstance(desk.commit_as(one, 1), Committed)
    desk.leave_group(one)
    assert isinstance(desk.enter().error, GroupChangesKind)
    (member,) = desk.stable()
    assert desk.generation > 2
    assert desk.committed(PLACE) is not None
    desk.leave(Identity(member_id=member))
    desk.settle(two := Reader("two"))
    assert two.owned == desk.places()
    assert two.epoch > 3
    assert desk.committed(PLACE) is not None


def test_a_group_that_assigns_does_not_know_a_classic_member() -> None:
    desk = ConsumerDesk()
    desk.settle(Reader("one"))
    assert isinstance(desk.heartbeat("one", 1), UnknownMember)
    assert isinstance(desk.sync("one", 1).error, UnknownMember)


def test_offsets_are_returned_to_a_member_only_in_its_epoch() -> None:
    desk = ConsumerDesk()
    desk.settle(one := Reader("one"))
    who = desk.identity(one)
    answer = desk.ask(lambda g, to, _: g.fetch(GROUP, to, who, 1)).answer
    assert isinstance(answer, Fetched)
    assert isinstance(desk.ask(lambda g, to, _: g.fetch(GROUP, to, who, 0)).error, StaleMember)
    nobody = Identity(member_id="nobody")
    assert isinstance(desk.ask(lambda g, to, _: g.fetch(GROUP, to, nobody, 1)).error, UnknownMember)


def test_a_producer_with_a_stale_epoch_gets_the_same_error_as_with_a_stale_generation() -> None:
    desk = ConsumerDesk()
    desk.settle(one := Reader("one"))
    commit = Commit(
        group=GROUP, generation=0, member=desk.identity(one), offsets=((PLACE, 1, 1, ""),)
    )
    command = TransactionalCommit(commit=commit, producer_id=1)
    asked = desk.ask(lambda g, to, now: g.commit_in_transaction(command, to, now))
    assert isinstance(asked.error, IllegalGeneration)


def test_a_group_with_members_is_described_and_not_deleted() -> None:
    desk = ConsumerDesk()
    desk.settle(one := Reader("one"))
    assert desk.delete() is not None
    view = desk.consumers.view()
    assert view.consumers is not None
    assert (view.state, view.consumers.assignor) == ("Stable", "uniform")
    assert view.consumers.members[0].assigned == desk.places()
    desk.leave_group(one)
    assert desk.delete() is None
    assert desk.machine.group(GROUP) is None
    assert list(desk.machine.records()) == []


def test_heartbeats_are_more_frequent_during_a_rebalance() -> None:
    desk = ConsumerDesk()
    desk.settle(one := Reader("one"))
    answer = desk.send(Reader("two"))
    assert isinstance(answer, ConsumerTold)
    assert answer.heartbeat_ms == CONFIG.consumer_hasty_heartbeat_ms
    desk.leave_group(Reader("two"))
    answer = desk.send(one)
    assert isinstance(answer, ConsumerTold)
    assert answer.heartbeat_ms == CONFIG.consumer_heartbeat_ms
