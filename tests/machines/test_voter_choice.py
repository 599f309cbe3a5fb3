"""The voters of the catalog: one, three or five, and each of them has the whole log."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.entry import Voters
from kafkaesque.machines.catalog.voter_choice import VOTERS_MAX, Seen, next_voters

LIVE = Seen()
AWAY = Seen(is_live=False)
LOST = Seen(is_live=False, is_lost=True)
BEHIND = Seen(has_caught_up=False)
DRAINED = Seen(is_leaving=True)
ADMITTED = Seen(was_there=False)


def group(*voters: int, learners: tuple[int, ...] = ()) -> Voters:
    return Voters(voters=voters, learners=learners)


def settled(now: Voters, brokers: dict[int, Seen], leader: int = 1) -> Voters:
    """Make one change after another until none is left to make."""
    for _ in range(30):
        wanted = next_voters(now, brokers, leader)
        if wanted is None:
            return now
        assert len(set(wanted.voters) ^ set(now.voters)) <= 1
        now = wanted
        if leader not in now.voters:
            leader = now.voters[0]
    raise AssertionError(f"it does not settle: {now}")


def test_every_broker_of_the_catalog_is_at_least_a_learner() -> None:
    brokers = {1: LIVE, 2: ADMITTED, 3: AWAY}
    assert next_voters(group(1), brokers, 1) == group(1, learners=(2, 3))


def test_two_brokers_are_one_voter_and_a_learner() -> None:
    assert settled(group(1), {1: LIVE, 2: LIVE}) == group(1, learners=(2,))


def test_three_brokers_are_three_voters() -> None:
    assert settled(group(1), dict.fromkeys((1, 2, 3), LIVE)) == group(1, 2, 3)


def test_four_brokers_are_three_voters_and_a_learner() -> None:
    assert settled(group(1), dict.fromkeys((1, 2, 3, 4), LIVE)) == group(1, 2, 3, learners=(4,))


def test_more_than_five_brokers_are_five_voters_and_learners() -> None:
    found = settled(group(1), dict.fromkeys(range(1, 8), LIVE))
    assert found == group(1, 2, 3, 4, 5, learners=(6, 7))


def test_a_step_does_not_start_before_both_have_caught_up() -> None:
    now = group(1, learners=(2, 3))
    for other in (BEHIND, AWAY, DRAINED, ADMITTED):
        assert next_voters(now, {1: LIVE, 2: LIVE, 3: other}, 1) is None


def test_a_half_done_step_continues_with_the_brokers_that_are_up() -> None:
    brokers = {1: LIVE, 2: LIVE, 3: LIVE}
    assert next_voters(group(1, 2, learners=(3,)), brokers, 1) == group(1, 2, 3)


def test_a_blocked_step_is_undone() -> None:
    for other in (BEHIND, AWAY, LOST):
        now = group(1, 2, learners=(3,))
        found = next_voters(now, {1: LIVE, 2: LIVE, 3: other}, 1)
        assert found == group(1, learners=(2, 3))
        four = group(1, 2, 3, 4, learners=(5,))
        brokers = {**dict.fromkeys((1, 2, 3, 4), LIVE), 5: other}
        assert next_voters(four, brokers, 1) == group(1, 2, 3, learners=(4, 5))


def test_of_two_voters_the_leader_goes_back_to_one_if_the_other_is_absent() -> None:
    now = group(1, 2, learners=(3,))
    assert next_voters(now, {1: LIVE, 2: AWAY, 3: AWAY}, 1) == group(1, learners=(2, 3))
    assert next_voters(now, {1: AWAY, 2: LIVE, 3: AWAY}, 2) == group(2, learners=(1, 3))


def test_no_voters_are_added_while_one_is_absent() -> None:
    now = group(1, 2, 3, learners=(4, 5))
    brokers = {1: LIVE, 2: LIVE, 3: AWAY, 4: LIVE, 5: LIVE}
    assert next_voters(now, brokers, 1) is None


def test_a_briefly_absent_voter_stays_a_voter() -> None:
    now = group(1, 2, 3, learners=(4,))
    assert next_voters(now, {1: LIVE, 2: LIVE, 3: AWAY, 4: LIVE}, 1) is None


def test_a_lost_voter_is_replaced_after_its_successor_was_added() -> None:
    now = group(1, 2, 3, learners=(4,))
    brokers = {1: LIVE, 2: LIVE, 3: LOST, 4: LIVE}
    between = next_voters(now, brokers, 1)
    assert between == group(1, 2, 3, 4)
    assert next_voters(between, brokers, 1) == group(1, 2, 4, learners=(3,))
    assert settled(now, brokers) == group(1, 2, 4, learners=(3,))


def test_a_lost_voter_without_a_successor_stays_because_it_may_return() -> None:
    now = group(1, 2, 3, learners=(4,))
    assert next_voters(now, {1: LIVE, 2: LIVE, 3: LOST, 4: BEHIND}, 1) is None


def test_two_lost_of_five_leave_three_which_tolerate_another_loss() -> None:
    brokers = {**dict.fromkeys((1, 2, 3), LIVE), 4: LOST, 5: LOST}
    assert settled(group(1, 2, 3, 4, 5), brokers) == group(1, 2, 3, learners=(4, 5))


def test_a_voter_that_returns_after_it_was_replaced_is_a_learner() -> None:
    now = group(1, 2, 4, learners=(3,))
    assert next_voters(now, dict.fromkeys((1, 2, 3, 4), LIVE), 1) is None


def test_a_removed_broker_leaves_the_group() -> None:
    assert next_voters(group(1, learners=(2,)), {1: LIVE}, 1) == group(1)
    three = dict.fromkeys((1, 2, 4), LIVE)
    assert settled(group(1, 2, 3, learners=(4,)), three) == group(1, 2, 4)
    assert settled(group(1, 2, 3), {1: LIVE, 2: LIVE}) == group(1, learners=(2,))


def test_no_voter_is_removed_if_the_rest_would_have_no_majority() -> None:
    assert next_voters(group(1, 2, 3), {1: LIVE, 2: AWAY}, 1) is None


def test_a_drained_voter_is_replaced_if_another_can_take_its_place() -> None:
    now = group(1, 2, 3, learners=(4,))
    brokers = {1: DRAINED, 2: LIVE, 3: LIVE, 4: LIVE}
    assert settled(now, brokers) == group(2, 3, 4, learners=(1,))
    assert settled(group(1, 2, 3), {1: DRAINED, 2: LIVE, 3: LIVE}) == group(1, 2, 3)


def test_the_only_voter_can_be_drained_when_there_are_two_brokers() -> None:
    assert settled(group(1, learners=(2,)), {1: DRAINED, 2: LIVE}) == group(2, learners=(1,))


def test_voters_come_from_different_racks_where_possible() -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: ""}
    brokers = {node: Seen(rack=rack) for node, rack in racks.items() if node < 5}
    found = settled(group(1), brokers)
    assert len(found.voters) == 3
    assert {4, 1} <= set(found.voters)
    apart = settled(group(1, 2, 3, learners=(4,)), brokers)
    assert 4 in apart.voters
    assert len(apart.voters) == 3


@st.composite
def seen(draw: st.DrawFn) -> Seen:
    is_live = draw(st.booleans())
    return Seen(
        rack=draw(st.sampled_from(["", "a", "b", "c"])),
        is_live=is_live,
        has_caught_up=draw(st.booleans()),
        is_lost=not is_live and draw(st.booleans()),
        is_leaving=draw(st.sampled_from([False, False, True])),
        was_there=draw(st.sampled_from([True, True, False])),
    )


@st.composite
def groups(draw: st.DrawFn) -> tuple[Voters, dict[int, Seen], int]:
    """Any group, in any state: its voters, the brokers of the catalog, its leader."""
    brokers = draw(st.dictionaries(st.integers(1, 9), seen(), min_size=1))
    members = draw(st.sets(st.sampled_from([*sorted(brokers), 11, 12]), min_size=1, max_size=8))
    voters = draw(st.sets(st.sampled_from(sorted(members)), min_size=1, max_size=6))
    now = Voters(voters=tuple(sorted(voters)), learners=tuple(sorted(members - voters)))
    return now, brokers, draw(st.sampled_from(sorted(voters)))


@given(groups())
def test_one_voter_changes_at_a_time_and_only_good_ones_are_added(
    found: tuple[Voters, dict[int, Seen], int],
) -> None:
    now, brokers, leader = found
    wanted = next_voters(now, brokers, leader)
    if wanted is None:
        assert set(now.learners) == brokers.keys() - set(now.voters)
        return
    come = set(wanted.voters) - set(now.voters)
    assert len(set(wanted.voters) ^ set(now.voters)) <= 1
    assert all(brokers[node].may_vote for node in come)
    live = [n for n in wanted.voters if n == leader or (n in brokers and brokers[n].is_live)]
    if wanted.voters != now.voters:
        assert len(live) * 2 > len(wanted.voters)
    assert set(wanted.learners) == brokers.keys() - set(wanted.voters)


@given(groups())
def test_every_group_settles_at_an_odd_number_if_possible(
    found: tuple[Voters, dict[int, Seen], int],
) -> None:
    now, brokers, leader = found
    brokers[leader] = Seen(rack=brokers[leader].rack if leader in brokers else "")
    count = 0
    while (wanted := next_voters(now, brokers, leader)) is not None:
        now = wanted
        count += 1
        assert count < 30, "it does not settle"
    live = sum(1 for n in now.voters if n in brokers and brokers[n].is_live)
    if len(now.voters) % 2 == 0:  # nothing could be committed, whatever is tried
        assert live < len(now.voters) // 2 + 1


@given(st.integers(1, 9), st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=9, max_size=9))
def test_healthy_brokers_give_as_many_voters_as_possible_in_as_many_racks(
    count: int, racks: list[str]
) -> None:
    brokers = {node: Seen(rack=racks[node - 1]) for node in range(1, count + 1)}
    found = settled(group(1), brokers)
    assert len(found.voters) == max(size for size in (1, 3, 5) if size <= max(count, 1))

    def spread(nodes: tuple[int, ...]) -> int:
        return len({brokers[node].rack or node for node in nodes})

    assert spread(found.voters) == min(len(found.voters), spread(tuple(brokers)))
    assert len(found.voters) <= VOTERS_MAX
