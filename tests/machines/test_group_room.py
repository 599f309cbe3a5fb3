"""The members of all groups of a coordinator have a limit in bytes, checked only when deciding."""

from kafkaesque.ages import Ages
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.decision import Now
from kafkaesque.machines.groups.consumer_commands import ConsumerHeartbeat
from kafkaesque.machines.groups.group_commands import Answer, Protocol
from kafkaesque.machines.groups.group_errors import GroupFull, MemberIdRequired
from kafkaesque.machines.groups.group_room import MEMBER_BYTES, PENDING_BYTES
from tests.machines.consumer_desk import ConsumerDesk, Reader
from tests.machines.group_desk import GROUP, Desk, Waiting

SMALL = GroupConfig(initial_rebalance_delay_ms=0, members_bytes_max=10 * MEMBER_BYTES)


def large(size: int) -> Protocol:
    return Protocol("range", b"m" * size)


def enter(desk: Desk, group: str, size: int = 100) -> Waiting:
    return desk.join("", large(size), group=group, knows_member_ids=False)


def test_members_of_many_groups_together_reach_the_limit() -> None:
    desk = Desk(SMALL)
    answers = [enter(desk, f"g{number}").answer for number in range(20)]
    refused = [answer for answer in answers if isinstance(answer, GroupFull)]
    assert 10 <= len(refused) < 20
    assert isinstance(answers[0], type(answers[1])), "the first were admitted"
    assert desk.machine.members_bytes <= SMALL.members_bytes_max


def test_metadata_counts_twice_because_it_is_also_written() -> None:
    desk = Desk(SMALL)
    assert isinstance(enter(desk, "one", 5 * MEMBER_BYTES).answer, GroupFull)
    assert not isinstance(enter(desk, "one", 4 * MEMBER_BYTES).answer, GroupFull)


def test_ids_of_members_that_do_not_join_count() -> None:
    desk = Desk(SMALL)
    many = SMALL.members_bytes_max // PENDING_BYTES
    answers = [desk.join(group=f"g{number % 7}").answer for number in range(many + 5)]
    given = sum(isinstance(answer, MemberIdRequired) for answer in answers)
    assert 0.8 * many < given <= many
    assert desk.machine.members_bytes <= SMALL.members_bytes_max
    assert isinstance(answers[-1], GroupFull)
    desk.pass_ms(SMALL.new_member_wait_ms_max)
    assert desk.machine.members_bytes == 0, "they are forgotten when they do not join"
    assert isinstance(desk.join(group="later").answer, MemberIdRequired)


def test_assignments_count_and_are_refused_to_the_leader() -> None:
    desk = Desk(SMALL)
    joined = desk.enter().joined
    much = (joined.member_id, b"a" * SMALL.members_bytes_max)
    assert isinstance(desk.sync(joined.member_id, joined.generation, much).answer, GroupFull)
    little = (joined.member_id, b"a" * 100)
    assert desk.sync(joined.member_id, joined.generation, little).synced.assignment == b"a" * 100


def test_a_member_with_unchanged_metadata_may_rejoin_when_the_limit_is_reached() -> None:
    desk = Desk(SMALL)
    first = desk.enter(large(1000)).joined
    while not isinstance(enter(desk, f"g{desk.machine.members_bytes}").answer, GroupFull):
        pass  # ends: each round takes room
    assert isinstance(desk.join(first.member_id, large(3000)).answer, GroupFull)
    assert desk.join(first.member_id, large(900)).joined.generation > first.generation


def test_there_is_room_again_when_members_leave() -> None:
    desk = Desk(SMALL)
    enter(desk, "one", 4 * MEMBER_BYTES)
    assert isinstance(enter(desk, "two", 4 * MEMBER_BYTES).answer, GroupFull)
    desk.pass_ms(60_000)
    assert desk.machine.members_bytes == 0
    assert not isinstance(enter(desk, "two", 4 * MEMBER_BYTES).answer, GroupFull)


def test_a_log_with_more_members_than_the_limit_can_still_be_read() -> None:
    full = Desk(GroupConfig(initial_rebalance_delay_ms=0))
    for number in range(20):
        enter(full, f"g{number}")
    desk = Desk(SMALL)
    for record in full.machine.records():
        desk.machine.apply(record)
    assert desk.machine.members_bytes > SMALL.members_bytes_max
    assert len(list(desk.machine.records())) == len(list(full.machine.records()))
    assert isinstance(enter(desk, "new").answer, GroupFull)


# ── groups whose coordinator assigns ─────────────────────────────────────────────────────────


def assigning(members_bytes_max: int, **partitions: int) -> ConsumerDesk:
    config = GroupConfig(initial_rebalance_delay_ms=0, members_bytes_max=members_bytes_max)
    return ConsumerDesk(config, **partitions)


def beat(desk: ConsumerDesk, group: str, pattern: str) -> Answer | None:
    command = ConsumerHeartbeat(
        group=group,
        member_id=f"of {group}",
        epoch=0,
        topics=desk.topics_known(),
        rebalance_timeout_ms=1000,
        names=frozenset(),
        pattern=pattern,
        owned=frozenset(),
    )
    return desk.ask(lambda g, to, now: g.consumer_heartbeat(command, to, now)).answer


def test_a_short_pattern_with_many_partitions_counts_by_its_partitions() -> None:
    desk = assigning(200_000, orders=200)
    answers = [beat(desk, f"g{number}", "o.*") for number in range(5)]
    assert [isinstance(answer, GroupFull) for answer in answers] == [False, False, True, True, True]
    assert desk.machine.members_bytes <= 200_000
    assert not isinstance(beat(desk, "g9", "nothing"), GroupFull), "a small one has room"


def test_a_group_keeps_its_old_target_when_new_partitions_have_no_room() -> None:
    desk = assigning(50_000, orders=10)
    reader = Reader("a")
    desk.settle(reader)
    desk.make_topic("orders", 1000)
    desk.settle(reader)
    assert reader.refused is None
    assert len(reader.owned) == 10
    assert desk.machine.members_bytes <= 50_000
    desk.make_topic("orders", 20)
    desk.settle(reader)
    assert len(reader.owned) == 20, "what has room is assigned"


def test_a_subscription_without_room_is_refused_and_the_member_keeps_its_place() -> None:
    desk = assigning(50_000, orders=10, large=1000)
    reader = Reader("a")
    desk.settle(reader)
    reader.names, reader.must_say_all = frozenset({"orders", "large"}), True
    assert isinstance(desk.send(reader), GroupFull)
    assert desk.consumers.members["a"].names == {"orders"}
    reader.names, reader.must_say_all = frozenset({"orders"}), True
    desk.settle(reader)
    assert len(reader.owned) == 10


def test_a_member_with_more_metadata_is_refused_when_the_limit_is_reached() -> None:
    desk = assigning(10_000)
    reader = Reader("a")
    desk.settle(reader)
    reader.names, reader.must_say_all = frozenset({"orders", "m" * 9_000}), True
    assert isinstance(desk.send(reader), GroupFull)


def test_the_size_of_a_group_follows_from_its_records_alone() -> None:
    desk = assigning(1 << 20, orders=10)
    one, two = Reader("a"), Reader("b", pattern=".*")
    desk.settle(one, two)
    before = desk.machine.members_bytes
    desk.restart()
    assert desk.machine.members_bytes == before > 0
    desk.leave_group(one)
    desk.leave_group(two)
    desk.carry_out(desk.machine.expire(much_later(desk)))
    assert desk.machine.group(GROUP) is None
    assert desk.machine.members_bytes == 0


def much_later(desk: ConsumerDesk) -> Now:
    wall_ms = desk.now.wall_ms + 8 * 24 * 3600 * 1000
    return desk.now._replace(wall_ms=wall_ms, ages=Ages(now_ms=wall_ms))
