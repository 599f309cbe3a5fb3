"""Share groups: who is let in, who is fenced, and who reads what."""

import pytest

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import GroupError
from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.groups.consumer_commands import LEAVING, ConsumerTold
from kafkaesque.machines.groups.group_commands import (
    Commit,
    Described,
    DescribeGroups,
    Fetched,
    FetchOffsets,
    Identity,
    Joined,
    TransactionalCommit,
    TransactionEnd,
)
from kafkaesque.machines.groups.group_errors import (
    FencedMember,
    GroupFull,
    GroupNotEmpty,
    InconsistentProtocol,
    InvalidGroup,
    InvalidHeartbeat,
    UnknownGroup,
    UnknownMember,
)
from kafkaesque.machines.groups.groups import GroupCommand, Groups
from kafkaesque.machines.groups.share_commands import (
    CreateShareGroup,
    ShareGroupReady,
    ShareHeartbeat,
    ShareTold,
)
from tests.machines.consumer_desk import Reader
from tests.machines.group_desk import GROUP, PLACE, Waiting
from tests.machines.share_group_desk import CONFIG, ShareDesk, Sharer
from tests.machines.test_group_room import much_later

COMMIT = Commit(
    group=GROUP, generation=-1, member=Identity(member_id=""), offsets=((PLACE, 1, 1, ""),)
)
IN_TRANSACTION = TransactionalCommit(commit=COMMIT, producer_id=1)


def asked(desk: ShareDesk, command: GroupCommand) -> Waiting:
    def question(groups: Groups, to: ReplyTo, now: Now) -> Decision:
        return groups.decide(command, to, now)

    return desk.ask(question)


# ── what members read ────────────────────────────────────────────────────────────────────────


def test_one_who_joins_is_given_everything_at_once() -> None:
    desk = ShareDesk()
    assert desk.told(Sharer("one")) == ShareTold(
        member_id="one",
        epoch=1,
        heartbeat_ms=CONFIG.share_heartbeat_ms,
        assigned=desk.places(),
    )
    assert desk.shares.state == "Stable"


def test_one_who_joins_reads_at_once_what_another_has_yet_to_stop_reading() -> None:
    desk = ShareDesk()
    one, two = Sharer("one"), Sharer("two")
    desk.beat(one)
    desk.beat(two)
    assert one.reads == desk.places(), "it learns of it with its next heartbeat"
    assert len(two.reads) == 2
    assert desk.told(one).assigned == desk.places() - two.reads
    assert (one.epoch, two.epoch) == (2, 2)


def test_members_share_partitions_when_there_are_too_few() -> None:
    desk = ShareDesk(orders=2)
    sharers = [Sharer(f"s{n}") for n in range(5)]
    desk.rounds(*sharers)
    assert all(len(one.reads) == 1 for one in sharers)
    counts = [sum(place in one.reads for one in sharers) for place in desk.places()]
    assert sorted(counts) == [2, 3]


def test_one_is_told_what_it_reads_only_when_that_has_changed() -> None:
    desk = ShareDesk(orders=2)
    one, two, three = Sharer("one"), Sharer("two"), Sharer("three")
    desk.rounds(one, two)
    assert desk.told(one).assigned is None
    desk.beat(three)
    answer = desk.told(one)
    assert (answer.epoch, answer.assigned) == (3, None), "it keeps what it has in the new epoch"


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    desk = ShareDesk()
    one, two = Sharer("one"), Sharer("two")
    desk.rounds(one, two)
    written = len(desk.written)
    desk.rounds(one, two)
    assert len(desk.written) == written


def test_what_one_who_leaves_was_reading_is_read_by_the_others() -> None:
    desk = ShareDesk()
    one, two = Sharer("one"), Sharer("two")
    desk.rounds(one, two)
    assert desk.depart(two) == ShareTold(member_id="two", epoch=LEAVING)
    assert desk.told(one).assigned == desk.places()
    desk.depart(one)
    assert desk.shares.state == "Empty"


def test_one_who_is_not_heard_from_is_dropped_and_others_take_over() -> None:
    desk = ShareDesk()
    one, two = Sharer("one"), Sharer("two")
    desk.rounds(one, two)
    for _ in range(11):
        desk.pass_ms(1_000)
        desk.beat(two)
    assert list(desk.shares.members) == ["two"]
    assert two.reads == desk.places()
    assert isinstance(desk.beat(one), UnknownMember)


def test_topics_that_come_grow_and_go_change_what_is_read() -> None:
    desk = ShareDesk(orders=2)
    one = Sharer("one", names=frozenset({"orders", "payments"}))
    desk.beat(one)
    desk.make_topic("payments", 1)
    assert desk.told(one).assigned == desk.places("orders", "payments")
    desk.make_topic("orders", 5)
    assert desk.told(one).assigned == desk.places()
    desk.delete_topic("orders")
    assert desk.told(one).assigned == desk.places("payments")
    desk.make_topic("others", 1)
    answer = desk.told(one)
    assert (answer.epoch, answer.assigned) == (4, None), "it does not want that one"


def test_a_topic_made_again_is_another_one() -> None:
    desk = ShareDesk()
    one = Sharer("one")
    desk.beat(one)
    before = one.reads
    desk.delete_topic("orders")
    desk.make_topic("orders", 4)
    desk.beat(one)
    assert one.reads == desk.places() != before


def test_one_who_wants_other_topics_is_given_these() -> None:
    desk = ShareDesk(orders=2, payments=2)
    one = Sharer("one")
    desk.beat(one)
    one.names, one.must_say_all = frozenset({"payments"}), True
    assert desk.told(one).assigned == desk.places("payments")
    one.names, one.must_say_all = frozenset(), True
    assert desk.told(one).assigned == frozenset()


def test_one_who_wants_a_topic_that_is_not_there_is_a_member_all_the_same() -> None:
    desk = ShareDesk()
    answer = desk.told(Sharer("one", names=frozenset({"nowhere"})))
    assert (answer.epoch, answer.assigned) == (1, frozenset())


# ── epochs ───────────────────────────────────────────────────────────────────────────────────


def test_an_answer_that_was_lost_is_given_again() -> None:
    desk = ShareDesk()
    one, two = Sharer("one"), Sharer("two")
    desk.rounds(one)
    desk.beat(two)
    desk.beat(one, is_lost=True)
    assert (one.epoch, one.reads) == (1, desk.places())
    assert desk.told(one).assigned == desk.places() - two.reads
    assert (one.epoch, one.refused) == (2, None)


@pytest.mark.parametrize("behind", [2, -1])
def test_a_member_in_a_wrong_epoch_is_fenced(behind: int) -> None:
    desk = ShareDesk()
    one = Sharer("one")
    for number in range(3):
        desk.rounds(one, Sharer(f"other{number}"), one, count=1)
    before = list(desk.machine.records())
    assert one.epoch == 4
    assert isinstance(desk.beat(one, 4 - behind), FencedMember)
    assert list(desk.machine.records()) == before


def test_one_who_joins_again_is_told_everything_and_nothing_is_recomputed() -> None:
    desk = ShareDesk()
    one, two = Sharer("one"), Sharer("two")
    desk.rounds(one, two)
    before = one.reads
    one.forget()
    answer = desk.told(one)
    assert (answer.epoch, answer.assigned) == (2, before)


@pytest.mark.parametrize("epoch", [LEAVING, 1, 7])
def test_one_who_is_no_member_must_join(epoch: int) -> None:
    desk = ShareDesk()
    assert isinstance(desk.beat(Sharer("one"), epoch), UnknownMember)
    assert desk.machine.group(GROUP) is None
    desk.beat(Sharer("two"))
    assert isinstance(desk.beat(Sharer("one"), epoch), UnknownMember)
    assert list(desk.shares.members) == ["two"]


@pytest.mark.parametrize(
    ("member_id", "epoch", "names"),
    [
        ("", 0, {"orders"}),
        ("m" * 37, 0, {"orders"}),
        ("", 3, {"orders"}),
        ("one", -2, {"orders"}),
        ("one", 0, set()),
    ],
)
def test_what_no_client_may_send_is_refused(member_id: str, epoch: int, names: set[str]) -> None:
    desk = ShareDesk()
    assert isinstance(desk.beat(Sharer(member_id, names=frozenset(names)), epoch), InvalidHeartbeat)
    assert desk.written == []


def test_a_member_id_may_have_36_characters() -> None:
    assert ShareDesk().told(Sharer("ü" * 36)).epoch == 1


# ── what lasts ───────────────────────────────────────────────────────────────────────────────


def test_a_restart_loses_no_member_and_sessions_start_again() -> None:
    desk = ShareDesk()
    one, two = Sharer("one"), Sharer("two")
    desk.rounds(one, two)
    desk.pass_ms(9_000)
    desk.restart()
    desk.pass_ms(9_000)
    answer = desk.told(one)
    assert (answer.epoch, answer.assigned) == (2, None)
    desk.pass_ms(2_000)
    assert list(desk.shares.members) == ["one"], "its session had started with the machine"
    assert desk.told(one).assigned == desk.places()


@pytest.mark.parametrize("kept", range(4))
def test_records_that_a_crash_cut_short_are_completed(kept: int) -> None:
    desk = ShareDesk()
    one, two = Sharer("one"), Sharer("two")
    desk.rounds(one)
    before = len(desk.written)
    desk.beat(two, is_lost=True)
    assert len(desk.written) == before + 3, "the group, and both members"
    del desk.written[before + kept :]
    desk.restart()
    desk.beat(one)
    members = desk.shares.members.values()
    assert {place for member in members for place in member.target} == desk.places()
    desk.rounds(one, two)
    assert one.refused is two.refused is None
    assert (len(one.reads), len(two.reads)) == (2, 2)
    assert one.reads | two.reads == desk.places()


def test_a_log_says_all_that_is_durable() -> None:
    desk = ShareDesk(orders=3, payments=2)
    both = frozenset({"orders", "payments"})
    sharers = [Sharer("one"), Sharer("two", names=both), Sharer("three", names=both)]
    desk.rounds(*sharers)
    desk.depart(sharers[0])
    desk.beat(sharers[1])
    again = Groups(CONFIG)
    for record in desk.machine.records():
        again.apply(record)
    assert list(again.records()) == list(desk.machine.records())
    assert again.members_bytes == desk.machine.members_bytes > 0


# ── limits ───────────────────────────────────────────────────────────────────────────────────


def test_a_group_has_a_limit_of_members() -> None:
    desk = ShareDesk(GroupConfig(members_max=2))
    desk.rounds(Sharer("one"), Sharer("two"), count=1)
    assert isinstance(desk.beat(Sharer("three")), GroupFull)
    assert desk.told(Sharer("two")).epoch == 2, "present ones stay"


def test_a_coordinator_has_a_limit_of_groups_and_of_their_names() -> None:
    desk = ShareDesk(GroupConfig(groups_max=1, group_name_bytes_max=10))
    assert isinstance(desk.beat(Sharer("one"), group="g" * 11), InvalidGroup)
    desk.beat(Sharer("one"))
    assert isinstance(desk.beat(Sharer("one"), group="other"), GroupFull)


def test_a_member_may_not_say_more_of_itself_than_is_allowed() -> None:
    desk = ShareDesk(GroupConfig(member_bytes_max=1_000))
    assert isinstance(desk.beat(Sharer("one", names=frozenset({"n" * 2_000}))), GroupFull)
    assert desk.written == []


def test_members_are_refused_what_there_is_no_room_for_and_go_on_with_what_they_have() -> None:
    desk = ShareDesk(GroupConfig(members_bytes_max=50_000), orders=10, large=1_000)
    one = Sharer("one")
    desk.beat(one)
    one.names, one.must_say_all = frozenset({"orders", "large"}), True
    assert isinstance(desk.beat(one), GroupFull)
    one.names = frozenset({"orders"})
    assert desk.told(one).assigned is None
    desk.make_topic("orders", 1_000)
    assert desk.told(one).assigned is None, "too many new partitions"
    assert one.reads == {place for place in desk.places("orders") if place[1] < 10}
    desk.make_topic("orders", 20)
    assert len(desk.told(one).assigned or ()) == 20, "what has room is given"
    assert desk.machine.members_bytes <= 50_000


def test_what_a_group_takes_is_free_again_when_it_is_gone() -> None:
    desk = ShareDesk()
    one = Sharer("one")
    desk.beat(one)
    assert desk.machine.members_bytes > 0
    desk.depart(one)
    assert desk.delete() is None
    assert desk.machine.members_bytes == 0


# ── kinds of groups ──────────────────────────────────────────────────────────────────────────


def classic(desk: ShareDesk) -> None:
    assert desk.enter().joined.generation == 1


def classic_yet_to_join(desk: ShareDesk) -> None:
    assert isinstance(desk.join().answer, GroupError)


def with_offsets_alone(desk: ShareDesk) -> None:
    desk.commit(1)


def with_offsets_to_come(desk: ShareDesk) -> None:
    asked(desk, IN_TRANSACTION)


def consumer(desk: ShareDesk) -> None:
    assert isinstance(desk.send(Reader("one")), ConsumerTold)


def consumer_without_members(desk: ShareDesk) -> None:
    desk.send(reader := Reader("one"))
    desk.leave_group(reader)


@pytest.mark.parametrize(
    "other",
    [
        classic,
        classic_yet_to_join,
        with_offsets_alone,
        with_offsets_to_come,
        consumer,
        consumer_without_members,
    ],
)
def test_a_group_of_another_kind_does_not_become_a_share_group(other: object) -> None:
    desk = ShareDesk()
    assert callable(other)
    other(desk)
    written = list(desk.written)
    assert isinstance(desk.beat(Sharer("me")), UnknownGroup)
    assert desk.written == written


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_share_group_does_not_become_another_kind(is_empty: bool) -> None:
    desk = ShareDesk()
    desk.beat(one := Sharer("one"))
    if is_empty:
        desk.depart(one)
    written = list(desk.written)
    assert isinstance(desk.join().error, InconsistentProtocol)
    assert isinstance(desk.join("one").error, InconsistentProtocol)
    assert isinstance(desk.send(Reader("two")), UnknownGroup)
    assert isinstance(desk.commit(1), UnknownGroup)
    assert isinstance(asked(desk, IN_TRANSACTION).error, UnknownGroup)
    asked(desk, TransactionEnd(producer_id=1, is_commit=True))
    deleting = desk.ask(lambda g, to, _: g.delete_offsets(GROUP, [("orders", PLACE)], to))
    assert isinstance(deleting.error, UnknownGroup)
    assert isinstance(desk.sync("one", 1).error, UnknownMember)
    assert isinstance(desk.heartbeat("one", 1), UnknownMember)
    (failure,) = desk.leave(Identity(member_id="one"))
    assert isinstance(failure, UnknownMember)
    me = Identity(member_id="one")
    fetch = FetchOffsets(group=GROUP, member=me, epoch=1)
    assert asked(desk, fetch).answer == Fetched(offsets={})
    assert desk.written == written


def test_a_share_group_is_deleted_without_members_only_and_its_name_is_free() -> None:
    desk = ShareDesk()
    desk.beat(one := Sharer("one"))
    assert isinstance(desk.delete(), GroupNotEmpty)
    desk.depart(one)
    assert desk.delete() is None
    assert desk.machine.group(GROUP) is None
    assert list(desk.machine.records()) == []
    assert isinstance(desk.enter().answer, Joined)


def test_an_administrator_can_create_a_share_group_without_members() -> None:
    desk = ShareDesk()
    create = CreateShareGroup(group=GROUP)
    assert asked(desk, create).answer == ShareGroupReady()
    assert (desk.shares.state, desk.shares.epoch) == ("Empty", 1)
    written = desk.written
    assert asked(desk, create).answer == ShareGroupReady()
    assert desk.written == written, "it may be repeated"
    desk.beat(one := Sharer("one"))
    assert one.reads == desk.places()
    assert isinstance(asked(desk, create).answer, GroupNotEmpty)
    assert desk.shares.members.keys() == {"one"}


def test_no_share_group_is_created_in_place_of_another_one() -> None:
    desk = ShareDesk()
    asked(desk, IN_TRANSACTION)
    create = CreateShareGroup(group=GROUP)
    assert isinstance(asked(desk, create).answer, UnknownGroup), "it is about to have offsets"
    asked(desk, COMMIT)
    assert isinstance(asked(desk, create).answer, UnknownGroup)
    assert isinstance(asked(desk, CreateShareGroup(group="")).answer, InvalidGroup)
    assert isinstance(asked(desk, CreateShareGroup(group="g" * 5000)).answer, InvalidGroup)


def test_a_deleted_group_starts_again_from_nothing() -> None:
    desk = ShareDesk()
    desk.beat(one := Sharer("one"))
    desk.depart(one)
    desk.delete()
    assert desk.told(one).epoch == 1


def test_a_share_group_without_members_stays_until_it_is_deleted() -> None:
    desk = ShareDesk()
    desk.beat(one := Sharer("one"))
    desk.depart(one)
    desk.carry_out(desk.machine.expire(much_later(desk)))
    assert desk.shares.state == "Empty"


# ── views and settings ───────────────────────────────────────────────────────────────────────


def test_a_group_is_shown_with_its_members() -> None:
    desk = ShareDesk()
    one = Sharer("one")
    desk.beat(one)
    described = asked(desk, DescribeGroups(groups=(GROUP, "no"))).answer
    assert isinstance(described, Described)
    (view,) = described.groups
    assert (view.state, view.protocol_type, view.consumers) == ("Stable", "share", None)
    assert view.shares is not None
    assert (view.shares.epoch, view.shares.assignor) == (1, "simple")
    (member,) = view.shares.members
    assert (member.member_id, member.client_id, member.client_host) == ("one", "test", "127.0.0.1")
    assert (member.rack_id, member.names, member.epoch) == ("a", ("orders",), 1)
    assert member.assigned == member.target == desk.places()


def test_new_settings_apply_from_the_next_heartbeat() -> None:
    desk = ShareDesk()
    desk.beat(one := Sharer("one"))
    desk.machine.configure(GroupConfig(share_heartbeat_ms=77, share_session_timeout_ms=500))
    assert desk.told(one).heartbeat_ms == 77
    desk.pass_ms(600)
    assert desk.shares.state == "Empty"


def test_a_group_is_created_by_the_command_as_by_the_method() -> None:
    desk = ShareDesk()
    command = ShareHeartbeat(
        group=GROUP,
        member_id="one",
        epoch=0,
        topics=desk.topics_known(),
        names=frozenset({"orders"}),
    )
    assert isinstance(asked(desk, command).answer, ShareTold)
