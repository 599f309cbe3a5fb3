"""Discovery among fifty members: all are found, none is declared dead wrongly, halves reunite."""

import pytest

from kafkaesque.gossip.messages import State
from tests.gossip.crowd import CONFIG, Crowd

EVERYONE = range(1, 51)
PERIOD = CONFIG.period_ticks


def a_crowd(seed: int = 0, loss: float = 0.0) -> Crowd:
    crowd = Crowd(50, seed, loss)
    crowd.run_until(lambda: crowd.all_know(EVERYONE), 60 * PERIOD)
    return crowd


@pytest.mark.requirement("REP-5")
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_fifty_members_find_each_other_through_one_seed(loss: float) -> None:
    crowd = Crowd(50, seed=1, loss=loss)
    crowd.run_until(lambda: crowd.all_know(EVERYONE), 30 * PERIOD)
    assert crowd.verdicts == []


def test_at_rest_no_member_is_suspected_and_each_costs_a_ping_and_an_answer_per_period() -> None:
    crowd = Crowd(50, late=0)
    crowd.run_until(lambda: crowd.all_know(EVERYONE), 60 * PERIOD)
    crowd.sent = 0
    crowd.run(100 * PERIOD)
    assert crowd.all_see(EVERYONE)
    assert crowd.verdicts == []
    assert all(gossip.me.incarnation == 0 for gossip in crowd.gossips.values())
    syncs = 2 * 50 * (100 // CONFIG.sync_periods + 1)
    assert crowd.sent <= 2 * 50 * 100 + syncs


def test_with_a_tenth_of_the_packets_lost_no_member_is_declared_dead() -> None:
    crowd = a_crowd(seed=2, loss=0.1)
    crowd.run(100 * PERIOD)
    assert crowd.verdicts == []


def test_a_lost_member_is_dead_for_all_after_some_periods() -> None:
    crowd = a_crowd()
    del crowd.gossips[7]
    others = [node for node in EVERYONE if node != 7]
    crowd.run_until(lambda: crowd.all_see([7], State.DEAD), 60 * PERIOD)
    assert crowd.all_see(others)
    assert {member.node for _, _, member in crowd.verdicts} == {7}


def test_a_member_that_leaves_is_not_declared_dead() -> None:
    crowd = a_crowd()
    crowd.send(9, crowd.gossips[9].leave())
    del crowd.gossips[9]
    crowd.run_until(lambda: crowd.all_see([9], State.LEFT), 20 * PERIOD)
    crowd.run(50 * PERIOD)
    assert crowd.all_see([9], State.LEFT)
    assert crowd.verdicts == []


@pytest.mark.parametrize("seed", range(2))
def test_two_separated_halves_find_each_other_again(seed: int) -> None:
    crowd = a_crowd(seed)
    first, second = set(range(1, 26)), set(range(26, 51))
    crowd.halves = (first, second)
    crowd.run(100 * PERIOD)
    for node, gossip in crowd.gossips.items():
        theirs = second if node in first else first
        assert all(gossip.members[other].state is State.DEAD for other in theirs)
        assert all(gossip.members[other].state is State.ALIVE for other in set(EVERYONE) - theirs)
    crowd.halves = None
    crowd.verdicts.clear()
    crowd.run_until(lambda: crowd.all_see(EVERYONE), 100 * PERIOD)
    assert crowd.verdicts == []


def test_a_member_that_restarts_elsewhere_is_known_by_its_new_address() -> None:
    crowd = a_crowd()
    crowd.start(5, rack="attic")
    crowd.run_until(
        lambda: (
            all(
                gossip.members[5].rack == "attic"
                for gossip in crowd.gossips.values()
                if 5 in gossip.members
            )
            and crowd.all_see(EVERYONE)
        ),
        60 * PERIOD,
    )
    assert crowd.verdicts == []


def test_a_packet_carries_a_bounded_number_of_updates_unless_everything_is_compared() -> None:
    crowd = Crowd(50, seed=3, loss=0.3)
    crowd.run(40 * PERIOD)
    assert CONFIG.updates_max <= crowd.largest <= 2 * CONFIG.updates_max + 1


def test_the_same_seed_gives_the_same_run() -> None:
    def story() -> object:
        crowd = Crowd(20, seed=9, loss=0.3)
        crowd.run(50 * PERIOD)
        return crowd.sent, crowd.verdicts, {n: g.members for n, g in crowd.gossips.items()}

    assert story() == story()


def test_a_member_gone_for_long_is_forgotten() -> None:
    crowd = Crowd(3)
    crowd.run_until(lambda: crowd.all_see([1, 2, 3]), 60 * PERIOD)
    del crowd.gossips[3]
    crowd.run_until(lambda: crowd.all_see([3], State.DEAD), 60 * PERIOD)
    crowd.run((CONFIG.forget_periods + 5) * PERIOD)
    assert all(3 not in gossip.members for gossip in crowd.gossips.values())
