"""Offsets, administration and restarts of consumer groups: what lasts and what does not."""

import pytest

from kafkaesque.ages import Ages, Leap
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import NewerFormat
from kafkaesque.machines.decision import Now
from kafkaesque.machines.groups.group_commands import Commit, Deleted, Described, Identity, Protocol
from kafkaesque.machines.groups.group_errors import (
    GroupFull,
    GroupNotEmpty,
    IllegalGeneration,
    RebalanceInProgress,
    UnknownGroup,
    UnknownMember,
)
from kafkaesque.machines.groups.group_records import CommittedOffset, OffsetKey, to_record
from kafkaesque.machines.groups.groups import Groups
from kafkaesque.machines.machine import MachineRecord
from tests.machines.group_desk import (
    GROUP,
    PLACE,
    SESSION_MS,
    TOPIC_ID,
    WALL_MS,
    Desk,
    refused,
    subscription,
)

OTHER_PLACE = (bytes(16), 4)
DAY_MS = 24 * 3600 * 1000


def deleted(desk: Desk, topic: str, place: tuple[bytes, int] = PLACE) -> object:
    return desk.ask(lambda g, to, _: g.delete_offsets(GROUP, [(topic, place)], to)).answer


def expire(desk: Desk, days: int, *, is_sound: bool = True, leaps: tuple[Leap, ...] = ()) -> None:
    wall_ms = desk.now.wall_ms + days * DAY_MS
    ages = Ages(now_ms=wall_ms, leaps=leaps) if is_sound else None
    now = Now(desk.now_ms, wall_ms, ages)
    desk.carry_out(desk.machine.expire(now))


# ── committing ───────────────────────────────────────────────────────────────────────────────


def test_an_offset_is_stored_with_its_metadata() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    assert refused(desk.commit(42, leader, 1, metadata="näh")) == frozenset()
    assert desk.committed() == CommittedOffset(
        offset=42, term=3, metadata="näh", committed_ms=desk.now.wall_ms
    )
    assert desk.committed(OTHER_PLACE) is None


def test_a_client_without_membership_may_commit_for_an_empty_group() -> None:
    desk = Desk()
    assert refused(desk.commit(7)) == frozenset()
    assert refused(desk.commit(8)) == frozenset()
    assert desk.state == "Empty"
    desk.stable()
    assert isinstance(desk.commit(9), UnknownMember)
    found = desk.committed()
    assert found is not None and found.offset == 8


def test_an_old_generation_cannot_commit() -> None:
    desk = Desk()
    leader, follower = desk.stable(2)
    assert isinstance(desk.commit(1, leader, 1), IllegalGeneration)
    desk.leave(Identity(member_id=follower))
    desk.join(leader)
    desk.sync(leader, 3)
    assert isinstance(desk.commit(1, leader, 2), IllegalGeneration)
    assert isinstance(desk.commit(1, follower, 2), UnknownMember)
    assert desk.committed() is None


def test_a_member_may_commit_what_it_has_read_before_it_rejoins() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    desk.enter()
    assert desk.state == "PreparingRebalance"
    assert refused(desk.commit(5, leader, 1)) == frozenset()


def test_a_member_without_an_assignment_cannot_commit() -> None:
    desk = Desk()
    leader = desk.enter().joined.member_id
    assert isinstance(desk.commit(5, leader, 1), RebalanceInProgress)


def test_a_generation_of_an_unknown_group_is_refused() -> None:
    assert isinstance(Desk().commit(5, "m", 1), IllegalGeneration)


def test_a_commit_is_a_sign_of_life() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    for offset in range(5):
        desk.pass_ms(SESSION_MS - 100)
        assert refused(desk.commit(offset, leader, 1)) == frozenset()


def test_too_long_metadata_is_refused_for_that_partition_alone() -> None:
    desk = Desk()
    assert refused(desk.commit(1, metadata="x" * 4096)) == frozenset()
    assert refused(desk.commit(2, metadata="ä" * 2049)) == {PLACE}
    found = desk.committed()
    assert found is not None and found.offset == 1


def test_a_refused_commit_does_not_create_a_group() -> None:
    desk = Desk()
    desk.commit(1, metadata="x" * 5_000)
    assert desk.machine.group(GROUP) is None


def test_commits_for_too_many_groups_are_refused() -> None:
    desk = Desk(GroupConfig(groups_max=0))
    assert isinstance(desk.commit(1), GroupFull)


def test_of_two_offsets_for_one_partition_the_later_one_counts() -> None:
    desk = Desk()
    command = Commit(
        group=GROUP,
        generation=-1,
        member=Identity(member_id=""),
        offsets=((PLACE, 5, -1, ""), (PLACE, 3, -1, "")),
    )
    desk.ask(lambda g, to, now: g.commit(command, to, now))
    assert len(desk.written) == 1
    found = desk.committed()
    assert found is not None and found.offset == 3


# ── deleting and forgetting ──────────────────────────────────────────────────────────────────


def test_offsets_of_a_topic_that_a_member_reads_are_not_deleted() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    desk.commit(5, leader, 1)
    assert deleted(desk, "orders") == Deleted(refused=frozenset({PLACE}))
    assert desk.committed() is not None
    assert deleted(desk, "payments") == Deleted()
    assert desk.committed() is None


def test_offsets_of_a_non_consumer_group_are_not_deleted_while_it_has_members() -> None:
    desk = Desk()
    desk.join(knows_member_ids=False, protocol_type="connect")
    assert isinstance(deleted(desk, "orders"), GroupNotEmpty)


def test_offsets_of_an_unknown_group_cannot_be_deleted() -> None:
    assert isinstance(deleted(Desk(), "orders"), UnknownGroup)


def test_a_group_with_members_is_not_deleted() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    assert isinstance(desk.delete(), GroupNotEmpty)
    desk.leave(Identity(member_id=leader))
    desk.commit(3)
    assert desk.delete() is None
    assert desk.machine.group(GROUP) is None
    assert desk.committed() is None
    assert isinstance(desk.delete(), UnknownGroup)


def test_the_offsets_of_a_deleted_topic_are_deleted() -> None:
    desk = Desk()
    desk.commit(1)
    desk.commit(2, place=OTHER_PLACE)
    desk.carry_out(desk.machine.forget_topic(TOPIC_ID))
    assert desk.committed() is None
    assert desk.committed(OTHER_PLACE) is not None


def test_offsets_expire_a_week_after_their_group_became_empty() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    desk.commit(1, leader, 1)
    expire(desk, days=30)
    assert desk.committed() is not None
    desk.now_ms += 2 * DAY_MS
    desk.leave(Identity(member_id=leader))
    expire(desk, days=6)
    assert desk.committed() is not None
    expire(desk, days=7, is_sound=False)
    assert desk.committed() is not None, "the clock is in doubt"
    leap = Leap(desk.now.wall_ms, 7 * DAY_MS)
    expire(desk, days=7, leaps=(leap,))
    assert desk.committed() is not None, "the clock was set forward by a week"
    expire(desk, days=7)
    assert desk.committed() is None
    assert desk.machine.group(GROUP) is None


def test_offsets_of_a_group_without_members_expire_a_week_after_their_commit() -> None:
    desk = Desk()
    desk.commit(1)
    desk.now_ms += 3 * DAY_MS
    desk.commit(2, place=OTHER_PLACE)
    expire(desk, days=4)
    assert desk.committed() is None
    assert desk.committed(OTHER_PLACE) is not None


def test_sessions_do_not_depend_on_the_wall_clock() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    for wall_ms in (0, WALL_MS + 3_600_000, WALL_MS - 3_600_000):
        desk.carry_out(desk.machine.tick(Now(desk.now_ms + 100, wall_ms)))
    assert desk.heartbeat(leader, 1) is None


# ── describing ───────────────────────────────────────────────────────────────────────────────


def test_a_stable_group_is_described_with_its_members_assignments() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    view = desk.view()
    assert (view.state, view.protocol_type, view.protocol) == ("Stable", "consumer", "range")
    (member,) = view.members
    assert (member.client_id, member.client_host) == ("test", "127.0.0.1")
    assert member.assignment == b"part of " + leader.encode()
    assert member.metadata == subscription("orders")


def test_a_rebalancing_group_is_described_with_its_members_only() -> None:
    desk = Desk()
    desk.stable()
    desk.enter()
    view = desk.view()
    assert (view.state, view.protocol) == ("PreparingRebalance", "")
    assert [(m.metadata, m.assignment) for m in view.members] == [(b"", b"")] * 2


def test_groups_with_only_offsets_are_listed_too() -> None:
    desk = Desk()
    desk.commit(1)
    answer = desk.ask(lambda g, to, _: g.describe(None, to)).answer
    assert isinstance(answer, Described)
    assert [(v.group, v.state, v.protocol_type) for v in answer.groups] == [(GROUP, "Empty", "")]


# ── restarts ─────────────────────────────────────────────────────────────────────────────────


def test_a_stable_group_is_still_stable_after_a_restart_without_rejoins() -> None:
    desk = Desk()
    leader, follower = desk.stable(2)
    desk.commit(5, leader, 2)
    desk.now_ms += 10 * SESSION_MS  # the restart took long
    desk.restart()
    assert desk.state == "Stable"
    desk.pass_ms(SESSION_MS - 100)
    assert desk.heartbeat(leader, 2) is None
    assert desk.heartbeat(follower, 2) is None
    assert desk.sync(follower, 2).synced.assignment == b"part of " + follower.encode()
    found = desk.committed()
    assert found is not None and found.offset == 5


def test_sessions_start_over_after_a_restart_and_do_expire() -> None:
    desk = Desk()
    leader, follower = desk.stable(2)
    desk.restart()
    desk.pass_ms(SESSION_MS // 2)
    desk.heartbeat(leader, 2)
    desk.pass_ms(SESSION_MS // 2 + 200)
    assert isinstance(desk.heartbeat(follower, 2), UnknownMember)
    assert isinstance(desk.heartbeat(leader, 2), RebalanceInProgress)


def test_a_generation_number_seen_by_members_is_not_reused_after_a_restart() -> None:
    desk = Desk()
    first = desk.enter().joined
    desk.restart()
    assert desk.state == "CompletingRebalance"
    assert desk.sync(first.member_id, 1, (first.member_id, b"mine")).synced.assignment == b"mine"
    desk.restart()
    desk.pass_ms(SESSION_MS + 100)
    assert desk.enter().joined.generation > 1


def test_a_leader_that_vanishes_during_a_restart_is_not_waited_for() -> None:
    desk = Desk()
    first = desk.enter()
    second = desk.enter()
    desk.join(first.joined.member_id)
    member = second.joined.member_id
    desk.restart()
    waiting = desk.sync(member, 2)
    desk.pass_ms(SESSION_MS + 100)
    assert isinstance(waiting.error, RebalanceInProgress)
    assert desk.join(member).joined.leader == member


def test_a_rebalance_in_progress_is_forgotten_by_a_restart() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    desk.enter()
    desk.restart()
    assert desk.state == "Stable"
    assert desk.heartbeat(leader, 1) is None


def test_members_keep_their_latest_subscription_across_a_restart() -> None:
    desk = Desk()
    (leader,) = desk.stable()
    changed = Protocol("range", subscription("payments"))
    desk.join(leader, changed)
    desk.sync(leader, 2)
    desk.restart()
    assert desk.group.members[leader].protocols == (changed,)
    assert desk.group.reads("payments") and not desk.group.reads("orders")


def test_an_instance_that_took_a_place_keeps_it_across_a_restart() -> None:
    desk = Desk()
    desk.stable(2, instances=True)
    back = desk.enter(instance="i1").joined
    desk.restart()
    assert desk.heartbeat(back.member_id, 2, "i1") is None


def test_the_durable_state_can_be_rebuilt_from_the_records() -> None:
    desk = Desk()
    leader, _ = desk.stable(2)
    desk.commit(5, leader, 2)
    again = Groups(desk.config)
    for record in desk.machine.records():
        again.apply(record)
    assert list(again.records()) == list(desk.machine.records())


# ── records ──────────────────────────────────────────────────────────────────────────────────


def test_an_offset_has_the_documented_format() -> None:
    value = CommittedOffset(offset=5, term=3, metadata="m", committed_ms=1)
    record = to_record(OffsetKey("g", TOPIC_ID, 2), value)
    assert record.key == bytes.fromhex("9402a167c410") + TOPIC_ID + b"\x02"
    assert record.value == bytes.fromhex("95020503a16d01")


@pytest.mark.parametrize(
    "record",
    [
        MachineRecord(bytes.fromhex("9263a167"), None),
        MachineRecord(bytes.fromhex("9201a167"), bytes.fromhex("926301")),
        MachineRecord(bytes.fromhex("9201a167"), bytes.fromhex("95020503a16d01")),
        MachineRecord(b"", None),
    ],
    ids=["key", "value", "mismatch", "empty"],
)
def test_a_record_of_a_later_version_is_not_skipped(record: MachineRecord) -> None:
    with pytest.raises(NewerFormat):
        Groups(GroupConfig()).apply(record)


def test_a_tombstone_that_outlived_its_group_does_no_harm() -> None:
    desk = Desk()
    desk.machine.apply(MachineRecord(bytes.fromhex("9201a167"), None))
    desk.machine.apply(to_record(OffsetKey("g", TOPIC_ID, 2), None))
    assert list(desk.machine.records()) == []
