"""What members of a classic consumer group are answered, state by state, as clients expect."""

import pytest

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.groups.group_commands import Identity, Leave, Left, Protocol
from kafkaesque.machines.groups.group_errors import (
    FencedInstance,
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    InvalidGroup,
    InvalidSessionTimeout,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from tests.machines.group_desk import (
    GROUP,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    STICKY,
    Desk,
    Waiting,
    subscription,
)


def test_the_first_member_leads_and_gets_the_list_of_members() -> None:
    desk = Desk()
    joined = desk.enter(STICKY, RANGE).joined
    assert (joined.generation, joined.protocol, joined.protocol_type) == (1, "sticky", "consumer")
    assert joined.leader == joined.member_id
    assert joined.members == ((joined.member_id, None, STICKY.metadata),)
    assert desk.state == "CompletingRebalance"
    synced = desk.sync(joined.member_id, 1, (joined.member_id, b"all")).synced
    assert synced.assignment == b"all"
    assert desk.state == "Stable"


def test_a_member_without_an_id_gets_one_and_joins_with_it() -> None:
    desk = Desk()
    refusal = desk.join().error
    assert isinstance(refusal, MemberIdRequired)
    assert desk.state == "Empty"
    assert desk.join(refusal.member_id).joined.member_id == refusal.member_id


def test_an_unused_member_id_expires() -> None:
    desk = Desk()
    refusal = desk.join().error
    assert isinstance(refusal, MemberIdRequired)
    desk.pass_ms(SESSION_MS + 100)
    assert isinstance(desk.join(refusal.member_id).error, UnknownMember)
    assert desk.machine.group(GROUP) is None


def test_an_id_that_was_never_assigned_is_refused() -> None:
    desk = Desk()
    assert isinstance(desk.join("made-up").error, UnknownMember)
    desk.stable()
    assert isinstance(desk.join("made-up").error, UnknownMember)


def test_members_that_start_together_share_one_generation() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=100))
    first, second = desk.enter(), desk.enter()
    assert first.answer is second.answer is None
    desk.pass_ms(150)
    assert first.answer is None  # a newcomer came meanwhile: more may follow
    desk.pass_ms(100)
    assert first.joined.generation == second.joined.generation == 1
    assert len(first.joined.members) == 2
    assert second.joined.members == ()


def test_newcomers_delay_the_first_generation_by_one_rebalance_timeout_at_most() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=100))
    first = desk.join(knows_member_ids=False, rebalance_ms=300)
    for _ in range(8):
        desk.enter()
        desk.pass_ms(50)
    assert first.joined.generation == 1


def test_a_rebalance_waits_for_a_member_that_just_got_its_id() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    given = desk.join().error
    assert isinstance(given, MemberIdRequired)
    again = desk.join(leader)
    assert again.answer is None
    assert desk.join(given.member_id).joined.generation == again.joined.generation == 2


@pytest.mark.requirement("CORE-6")
def test_a_newcomer_makes_the_others_rejoin() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    newcomer = desk.enter()
    assert desk.state == "PreparingRebalance"
    assert newcomer.answer is None
    assert isinstance(desk.heartbeat(leader, 1), RebalanceInProgress)
    again = desk.join(leader)
    assert again.joined.generation == newcomer.joined.generation == 2
    assert again.joined.leader == leader == newcomer.joined.leader


def test_a_member_that_does_not_rejoin_in_time_is_removed() -> None:
    desk = Desk()
    (old,) = desk.stable()
    newcomer = desk.enter()
    for _ in range(REBALANCE_MS // 5_000):
        assert newcomer.answer is None
        desk.heartbeat(old, 1)
        desk.pass_ms(5_000)
    assert newcomer.joined.leader == newcomer.joined.member_id
    assert isinstance(desk.heartbeat(old, 1), UnknownMember)


def test_a_silent_member_is_removed_and_the_rest_rebalance() -> None:
    desk = Desk()
    leader, silent = desk.stable(2)
    for _ in range(4):
        desk.pass_ms(SESSION_MS // 4)
        desk.heartbeat(leader, 2)
    assert desk.state == "PreparingRebalance"
    assert isinstance(desk.heartbeat(silent, 2), UnknownMember)
    assert desk.join(leader).joined.generation == 3


def test_heartbeats_keep_a_member_alive() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    for _ in range(20):
        desk.pass_ms(SESSION_MS - 100)
        assert desk.heartbeat(leader, 1) is None
    assert desk.state == "Stable"


def test_a_group_without_members_is_empty_in_a_new_generation() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    assert desk.leave(Identity(member_id=leader)) == (None,)
    assert (desk.state, desk.generation) == ("Empty", 2)
    assert isinstance(desk.heartbeat(leader, 1), UnknownMember)


def test_a_follower_that_rejoins_unchanged_stays_in_its_generation() -> None:
    desk = Desk()
    _, follower = desk.stable(2)
    assert desk.join(follower).joined.generation == 2
    assert desk.state == "Stable"


def test_a_leader_that_rejoins_starts_a_rebalance() -> None:
    desk = Desk()
    leader, follower = desk.stable(2)
    again = desk.join(leader)
    assert again.answer is None
    assert desk.join(follower).joined.generation == again.joined.generation == 3


def test_a_member_with_a_new_subscription_makes_the_others_rejoin() -> None:
    desk = Desk()
    leader, follower = desk.stable(2)
    changed = desk.join(follower, Protocol("range", subscription("payments")))
    assert changed.answer is None
    desk.join(leader)
    assert changed.joined.generation == 3


def test_a_member_that_lost_the_answer_to_its_join_gets_it_again() -> None:
    desk = Desk()
    first = desk.enter().joined
    assert desk.join(first.member_id).joined == first
    assert desk.state == "CompletingRebalance"


def test_followers_wait_for_the_leaders_assignments() -> None:
    desk = Desk()
    first = desk.enter()
    second = desk.enter()
    leader = desk.join(first.joined.member_id).joined
    follower = second.joined.member_id
    waiting = desk.sync(follower, 2)
    assert waiting.answer is None
    desk.sync(leader.member_id, 2, (follower, b"yours"), ("stranger", b"nobody's"))
    assert waiting.synced.assignment == b"yours"
    assert desk.sync(leader.member_id, 2).synced.assignment == b""  # it was assigned nothing


def test_a_member_waiting_for_its_assignment_learns_of_a_new_rebalance() -> None:
    desk = Desk()
    first = desk.enter()
    second = desk.enter()
    leader = desk.join(first.joined.member_id).joined.member_id
    waiting = desk.sync(second.joined.member_id, 2)
    desk.enter()
    assert isinstance(waiting.error, RebalanceInProgress)
    assert isinstance(desk.sync(leader, 2).error, RebalanceInProgress)


def test_a_leader_that_never_assigns_is_removed() -> None:
    desk = Desk()
    first = desk.enter()
    second = desk.enter()
    leader = desk.join(first.joined.member_id).joined.member_id
    waiting = desk.sync(second.joined.member_id, 2)
    for _ in range(REBALANCE_MS // 5_000 + 1):
        desk.heartbeat(leader, 2)
        desk.pass_ms(5_000)
    assert isinstance(waiting.error, RebalanceInProgress)
    assert isinstance(desk.heartbeat(leader, 2), UnknownMember)


def test_a_wrong_generation_is_refused() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    for generation in (-1, 0, 2):
        assert isinstance(desk.heartbeat(leader, generation), IllegalGeneration)
        assert isinstance(desk.sync(leader, generation).error, IllegalGeneration)


def test_the_most_voted_protocol_supported_by_all_is_used() -> None:
    desk = Desk()
    first = desk.enter(Protocol("a", b"1"), Protocol("b", b"2"), Protocol("c", b"3"))
    desk.enter(Protocol("c", b"4"), Protocol("b", b"5"))
    desk.enter(Protocol("c", b"6"), Protocol("b", b"7"))
    leader = first.joined.member_id
    again = desk.join(leader, Protocol("a", b"1"), Protocol("b", b"2"), Protocol("c", b"3"))
    assert again.joined.protocol == "c"
    assert [metadata for _, _, metadata in again.joined.members] == [b"3", b"4", b"6"]


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", (RANGE,)), ("consumer", (Protocol("other", b""),)), ("", (RANGE,))],
)
def test_a_member_without_a_common_protocol_is_refused(
    protocol_type: str, protocols: tuple[Protocol, ...]
) -> None:
    desk = Desk()
    desk.stable()
    refusal = desk.join("", *protocols, protocol_type=protocol_type).error
    assert isinstance(refusal, InconsistentProtocol)
    assert desk.state == "Stable"


def test_a_sync_under_another_protocol_is_refused() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    assert isinstance(desk.sync(leader, 1, protocol="sticky").error, InconsistentProtocol)
    assert isinstance(desk.sync(leader, 1, protocol_type="connect").error, InconsistentProtocol)
    assert desk.sync(leader, 1, protocol="range", protocol_type="consumer").synced


@pytest.mark.parametrize("session_ms", [-1, 0, 1_800_001])
def test_a_session_timeout_out_of_range_is_refused(session_ms: int) -> None:
    assert isinstance(Desk().join(session_ms=session_ms).error, InvalidSessionTimeout)


def test_a_group_without_a_name_cannot_be_joined() -> None:
    desk = Desk()
    assert isinstance(desk.join(group="").error, InvalidGroup)
    assert isinstance(desk.join(group="x" * 5_000).error, InvalidGroup)


def test_several_members_leave_at_once_each_with_a_separate_answer() -> None:
    desk = Desk()
    first, second = desk.stable(2)
    answers = desk.leave(
        Identity(member_id=first), Identity(member_id="stranger"), Identity(member_id=second)
    )
    assert answers[0] is answers[2] is None
    assert isinstance(answers[1], UnknownMember)
    assert desk.state == "Empty"


def test_leaving_an_unknown_group_is_refused() -> None:
    desk = Desk()
    command = Leave(group=GROUP, members=(Identity(member_id="m"),))
    answer = desk.ask(lambda g, to, now: g.leave(command, to, now)).answer
    assert isinstance(answer, Left)
    assert isinstance(answer.failures[0], UnknownMember)


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    desk = Desk()
    desk.stable()
    refusal = desk.join().error
    assert isinstance(refusal, MemberIdRequired)
    waiting = desk.join(refusal.member_id)
    desk.leave(Identity(member_id=refusal.member_id))
    assert isinstance(waiting.error, UnknownMember)


def test_a_newcomer_that_stops_responding_is_removed() -> None:
    desk = Desk()
    leader = desk.join(knows_member_ids=False, rebalance_ms=2**31 - 1).joined.member_id
    desk.sync(leader, 1)
    newcomer = desk.enter()
    for _ in range(desk.config.new_member_wait_ms_max // 5_000):
        assert newcomer.answer is None
        desk.heartbeat(leader, 1)  # it lives, and does not rejoin for weeks
        desk.pass_ms(5_000)
    assert isinstance(newcomer.error, UnknownMember)


# ── instances ────────────────────────────────────────────────────────────────────────────────


def test_a_returning_instance_takes_its_old_place_without_a_rebalance() -> None:
    desk = Desk()
    leader, old = desk.stable(2, instances=True)
    back = desk.enter(instance="i1").joined
    assert back.member_id != old
    assert (back.generation, back.leader, desk.state) == (2, leader, "Stable")
    part = desk.sync(back.member_id, 2, instance="i1").synced.assignment
    assert part == b"part of " + old.encode()
    assert desk.heartbeat(leader, 2, "i0") is None


def test_the_old_holder_of_an_instance_id_is_fenced() -> None:
    desk = Desk()
    _, old = desk.stable(2, instances=True)
    desk.enter(instance="i1")
    assert isinstance(desk.heartbeat(old, 2, "i1"), FencedInstance)
    assert isinstance(desk.sync(old, 2, instance="i1").error, FencedInstance)
    assert isinstance(desk.join(old, instance="i1").error, FencedInstance)
    assert isinstance(desk.commit(1, old, 2, instance="i1"), FencedInstance)
    assert isinstance(desk.heartbeat(old, 2), UnknownMember)


def test_an_instance_id_without_a_holder_is_unknown() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    assert isinstance(desk.heartbeat(leader, 1, "i7"), UnknownMember)


def test_a_waiting_instance_is_fenced_when_it_joins_again() -> None:
    desk = Desk()
    leader, _ = desk.stable(2, instances=True)
    waiting = desk.join(leader, instance="i0")
    desk.enter(instance="i0")
    assert isinstance(waiting.error, FencedInstance)


def test_a_leading_instance_that_returns_is_asked_to_skip_the_assignment() -> None:
    desk = Desk()
    leader, _ = desk.stable(2, instances=True)
    back = desk.enter(instance="i0").joined
    assert back.skip_assignment
    assert back.leader == back.member_id != leader
    assert len(back.members) == 2


def test_a_leading_instance_that_cannot_skip_is_given_the_old_leader_id() -> None:
    desk = Desk()
    leader, _ = desk.stable(2, instances=True)
    back = desk.join(instance="i0", knows_member_ids=False, can_skip_assignment=False).joined
    assert not back.skip_assignment
    assert (back.leader, back.members) == (leader, ())
    assert desk.group.generation.leader == back.member_id


def test_an_instance_that_returns_with_other_topics_makes_the_others_rejoin() -> None:
    desk = Desk()
    desk.stable(2, instances=True)
    back = desk.enter(Protocol("range", subscription("payments")), instance="i1")
    assert back.answer is None
    assert desk.state == "PreparingRebalance"


def test_an_instances_previously_owned_partitions_do_not_count_as_a_change() -> None:
    desk = Desk()
    desk.stable(2, instances=True)
    owned = Protocol("range", subscription("orders", rest=b"\0\0\0\1 and what it owns"))
    assert desk.enter(owned, instance="i1").joined.generation == 2


def test_an_instance_keeps_its_place_while_others_rebalance() -> None:
    desk = Desk()
    leader, away = desk.stable(2, instances=True)
    desk.join(leader, Protocol("range", subscription("payments")), instance="i0")
    desk.pass_ms(SESSION_MS - 1_000)
    assert away in desk.group.members
    desk.pass_ms(2_000)
    assert desk.group.generation.number == 3
    assert list(desk.group.members) == [leader]


def test_an_absent_instance_keeps_its_place_in_the_next_generation_but_does_not_lead() -> None:
    desk = Desk()

    def enter(instance: str, *protocols: Protocol) -> Waiting:
        return desk.join(
            "",
            *protocols,
            instance=instance,
            session_ms=60_000,
            rebalance_ms=5_000,
            knows_member_ids=False,
        )

    away = enter("away").joined
    desk.sync(away.member_id, 1, instance="away")
    here = enter("here")
    desk.pass_ms(5_100)
    assert here.joined.generation == 2
    assert here.joined.leader == here.joined.member_id
    assert [instance for _, instance, _ in here.joined.members] == ["away", "here"]


def test_an_administrator_removes_an_instance_by_name() -> None:
    desk = Desk()
    desk.stable(1, instances=True)
    assert desk.leave(Identity(member_id="", instance_id="i0")) == (None,)
    (failure,) = desk.leave(Identity(member_id="", instance_id="i0"))
    assert isinstance(failure, UnknownMember)


# ── limits ───────────────────────────────────────────────────────────────────────────────────


def test_members_and_unused_ids_together_are_limited() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=0, members_max=2))
    desk.stable()
    given = desk.join().error
    assert isinstance(given, MemberIdRequired)
    assert isinstance(desk.join().error, GroupFull)
    assert desk.join(given.member_id).answer is None


def test_a_member_with_too_much_metadata_is_refused() -> None:
    desk = Desk()
    refusal = desk.enter(Protocol("range", bytes(desk.config.member_bytes_max))).error
    assert isinstance(refusal, GroupFull)
    assert desk.machine.group(GROUP) is None


def test_members_with_too_much_metadata_together_are_refused() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=0, group_bytes_max=300))
    assert desk.enter(Protocol("range", bytes(150))).joined
    assert isinstance(desk.enter(Protocol("range", bytes(150))).error, GroupFull)


def test_too_large_assignments_are_refused_and_the_leader_is_not_waited_for() -> None:
    desk = Desk(GroupConfig(initial_rebalance_delay_ms=0, group_bytes_max=300))
    leader = desk.enter().joined.member_id
    assert isinstance(desk.sync(leader, 1, (leader, bytes(301))).error, GroupFull)
    for _ in range(REBALANCE_MS // 5_000 + 1):
        desk.heartbeat(leader, 1)
        desk.pass_ms(5_000)
    assert desk.state == "Empty"


def test_the_number_of_groups_is_limited() -> None:
    desk = Desk(GroupConfig(groups_max=3))
    for number in range(3):
        assert isinstance(desk.join(group=f"g{number}").error, MemberIdRequired)
    assert isinstance(desk.join(group="g3").error, GroupFull)
    desk.pass_ms(SESSION_MS + 100)
    assert isinstance(desk.join(group="g3").error, MemberIdRequired)


def test_groups_that_come_and_go_leave_nothing_behind() -> None:
    desk = Desk()
    for number in range(1_000):
        given = desk.join(group=f"g{number}").error
        assert isinstance(given, MemberIdRequired)
        command = Leave(group=f"g{number}", members=(Identity(member_id=given.member_id),))
        desk.ask(lambda g, to, now, command=command: g.leave(command, to, now))  # type: ignore[misc]
        assert desk.machine.group(f"g{number}") is None
    assert len(desk.machine._timers) < 100
