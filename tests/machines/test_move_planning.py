"""Plans lose nothing, come to an end, and move no more than they must."""

import random
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaesque.machines.catalog.catalog_errors import InvalidReplicas
from kafkaesque.machines.catalog.layout import Host, Layout, PlannedMove, Slot, is_lopsided
from kafkaesque.machines.catalog.move_planning import plan, set_replication
from kafkaesque.machines.catalog.placement import Replicas, place

LIVE = Host()
AWAY = Host(is_live=False)
LOST = Host(is_live=False, is_lost=True)
DRAINING = Host(is_draining=True)
TOPIC, OTHER = b"t", b"u"
MOVES_MAX = 3


def a_layout(*replicas: Replicas, topic: bytes = TOPIC, internal: bool = False) -> Layout:
    slots = {(topic, index): nodes for index, nodes in enumerate(replicas)}
    return Layout(replicas=slots, internal=(topic,) if internal else ())


def moved(layout: Layout, moves: list[PlannedMove]) -> Layout:
    """Carry out moves at once."""
    done = {(move.topic_id, move.partition): move.nodes for move in moves}
    assert len(done) == len(moves), "a partition is moved once at a time"
    return replace(layout, replicas={**layout.replicas, **done})


def settled(
    layout: Layout, hosts: Mapping[int, Host], *, balances: bool = False
) -> tuple[Layout, int]:
    """Plan and move until nothing is left to do; also return how many moves that took."""
    chance = random.Random(1)
    count = 0
    for _ in range(500):
        moves = plan(layout, hosts, chance, MOVES_MAX, balances=balances)
        if not moves:
            return layout, count
        assert len(moves) <= MOVES_MAX
        layout = moved(layout, moves)
        count += len(moves)
    raise AssertionError("it does not settle")


def spread(nodes: Replicas, hosts: Mapping[int, Host]) -> int:
    return len({hosts[node].rack or node for node in nodes if node in hosts})


def loads(layout: Layout, hosts: Mapping[int, Host]) -> tuple[list[int], list[int]]:
    """How many replicas each eligible broker has, and how many partitions it should lead."""
    able = [node for node, host in hosts.items() if host.may_take]
    holds = Counter(node for nodes in layout.replicas.values() for node in nodes)
    leads = Counter(nodes[0] for nodes in layout.replicas.values())
    return [holds[node] for node in able], [leads[node] for node in able]


# ── invariants ───────────────────────────────────────────────────────────────────────────────

kinds = st.sampled_from([LIVE, LIVE, LIVE, AWAY, LOST, DRAINING])
racks = st.sampled_from(["", "a", "b", "c"])


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Layout, dict[int, Host]]:
    """Some brokers in any state, and topics placed on them or on brokers that no longer exist."""
    hosts = {
        node: replace(draw(kinds), rack=draw(racks))
        for node in range(1, 1 + draw(st.integers(1, 7)))
    }
    nodes = st.lists(st.sampled_from([*hosts, 99]), min_size=1, max_size=4, unique=True)
    slots: dict[Slot, Replicas] = {}
    for topic in (TOPIC, OTHER):
        for index, found in enumerate(draw(st.lists(nodes, max_size=6))):
            slots[topic, index] = tuple(found)
    return Layout(replicas=slots, internal=(OTHER,)), hosts


@given(clusters(), st.booleans())
def test_a_partition_never_has_fewer_replicas_nor_two_on_a_broker(
    cluster: tuple[Layout, dict[int, Host]], balances: bool
) -> None:
    layout, hosts = cluster
    for move in plan(layout, hosts, random.Random(1), MOVES_MAX, balances=balances):
        before = layout.replicas[move.topic_id, move.partition]
        assert len(move.nodes) >= len(before)
        assert len(set(move.nodes)) == len(move.nodes)
        assert all(hosts[node].may_take for node in set(move.nodes) - set(before))


@given(clusters(), st.booleans())
def test_every_plan_comes_to_an_end_and_then_plans_nothing(
    cluster: tuple[Layout, dict[int, Host]], balances: bool
) -> None:
    layout, hosts = cluster
    settled(layout, hosts, balances=balances)


@given(clusters())
def test_brokers_that_can_be_emptied_are_empty_in_the_end(
    cluster: tuple[Layout, dict[int, Host]],
) -> None:
    layout, hosts = cluster
    found, _ = settled(layout, hosts)
    able = {node for node, host in hosts.items() if host.may_take}
    for slot, nodes in found.replicas.items():
        live = [n for n in layout.replicas[slot] if n in hosts and hosts[n].is_live]
        is_stuck = len(live) <= len(layout.replicas[slot]) // 2
        outgoing = [node for node in nodes if node not in hosts or hosts[node].must_go]
        assert not outgoing or is_stuck or able <= set(nodes)


@given(clusters())
def test_the_same_random_seed_gives_the_same_plan(cluster: tuple[Layout, dict[int, Host]]) -> None:
    layout, hosts = cluster
    first = plan(layout, hosts, random.Random(7), MOVES_MAX, balances=True)
    assert plan(layout, hosts, random.Random(7), MOVES_MAX, balances=True) == first


@given(clusters())
def test_partitions_are_in_as_many_racks_as_possible(
    cluster: tuple[Layout, dict[int, Host]],
) -> None:
    layout, hosts = cluster
    hosts = {node: Host(rack=host.rack) for node, host in hosts.items()}
    found, _ = settled(layout, hosts, balances=True)
    for slot, nodes in found.replicas.items():
        if all(node in hosts for node in layout.replicas[slot]):
            assert spread(nodes, hosts) == min(len(nodes), spread(tuple(hosts), hosts))


@given(clusters())
def test_replicas_and_leaders_are_even_without_racks(
    cluster: tuple[Layout, dict[int, Host]],
) -> None:
    layout, hosts = cluster
    hosts = dict.fromkeys(hosts, LIVE)
    known = {s: nodes for s, nodes in layout.replicas.items() if set(nodes) <= hosts.keys()}
    found, _ = settled(replace(layout, replicas=known), hosts, balances=True)
    holds, _ = loads(found, hosts)
    assert max(holds) - min(holds) <= 1


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 60))
def test_a_new_broker_gets_its_share_with_as_few_moves_as_possible(
    brokers: int, replication: int, partitions: int
) -> None:
    replication = min(replication, brokers)
    old = dict.fromkeys(range(1, brokers + 1), LIVE)
    no_racks = dict.fromkeys(old, "")
    layout = a_layout(*place(no_racks, [], partitions, replication, random.Random(3)))
    layout, _ = settled(layout, old, balances=True)
    hosts = {**old, brokers + 1: LIVE}
    found, _ = settled(layout, hosts, balances=True)
    holds, leads = loads(found, hosts)
    assert max(holds) - min(holds) <= 1
    copied = sum(len({*found.replicas[s]} - {*layout.replicas[s]}) for s in layout.replicas)
    assert copied == holds[-1] <= -(-partitions * replication // (brokers + 1))
    assert max(leads) - min(leads) <= 2


# ── by hand ──────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_planned_where_nothing_is_wrong() -> None:
    layout = a_layout((1, 2, 3), (2, 3, 1), (3, 1, 2))
    assert plan(layout, dict.fromkeys((1, 2, 3), LIVE), random.Random(1), 9, balances=True) == []


def test_a_broker_that_is_briefly_absent_keeps_its_replicas() -> None:
    layout = a_layout((1, 2, 3))
    hosts = {1: LIVE, 2: LIVE, 3: AWAY, 4: LIVE}
    assert plan(layout, hosts, random.Random(1), 9, balances=True) == []


def test_a_lost_replica_is_replaced_and_a_lost_first_one_by_a_live_replica() -> None:
    hosts = {1: LOST, 2: LIVE, 3: LIVE, 4: LIVE}
    layout = a_layout((1, 2, 3), (2, 3, 1), (2, 3, 4))
    assert plan(layout, hosts, random.Random(1), 9) == [
        PlannedMove(TOPIC, 0, (3, 2, 4)),  # 2 is first twice already
        PlannedMove(TOPIC, 1, (2, 3, 4)),
    ]


def test_lost_replicas_are_replaced_before_drained_ones() -> None:
    hosts = {1: DRAINING, 2: LIVE, 3: LOST, 4: LIVE, 5: LIVE}
    layout = a_layout((1, 2), (1, 2), (2, 4, 3))
    (move,) = plan(layout, hosts, random.Random(1), 1)
    assert move == PlannedMove(TOPIC, 2, (2, 4, 5))


def test_an_only_replica_on_a_lost_broker_is_not_replaced_by_an_empty_one() -> None:
    hosts = {1: LOST, 2: LIVE, 3: LIVE}
    assert plan(a_layout((1,), (1, 2)), hosts, random.Random(1), 9) == []


def test_a_move_to_a_lost_broker_gets_another_target() -> None:
    layout = replace(a_layout((1, 2)), targets={(TOPIC, 0): (1, 3)})
    hosts = {1: LIVE, 2: LIVE, 3: LOST, 4: LIVE}
    (move,) = plan(layout, hosts, random.Random(1), 9)
    assert move == PlannedMove(TOPIC, 0, (1, 2))  # which has the records already


def test_moves_in_progress_count_and_waiting_ones_do_not() -> None:
    layout = a_layout(*[(1, 2)] * 6)
    hosts = {1: DRAINING, 2: LIVE, 3: LIVE, 4: AWAY}
    live = replace(layout, targets={(TOPIC, 0): (3, 2), (TOPIC, 1): (3, 2)})
    assert len(plan(live, hosts, random.Random(1), 3)) == 1
    stuck = replace(layout, targets={(TOPIC, 0): (4, 2), (TOPIC, 1): (4, 2)})
    assert len(plan(stuck, hosts, random.Random(1), 3)) == 3


def test_a_partition_that_is_moving_is_not_planned_again() -> None:
    layout = replace(a_layout((1, 2)), targets={(TOPIC, 0): (1, 3)})
    hosts = {1: DRAINING, 2: LIVE, 3: LIVE, 4: LIVE}
    assert plan(layout, hosts, random.Random(1), 9) == []


def test_internal_topics_grow_with_the_cluster_up_to_three_and_others_do_not() -> None:
    for brokers, expected in ((1, 1), (2, 2), (3, 3), (5, 3)):
        hosts = dict.fromkeys(range(1, brokers + 1), LIVE)
        found, _ = settled(a_layout((1,), (1,), internal=True), hosts)
        assert [len(nodes) for nodes in found.replicas.values()] == [expected] * 2
        assert plan(a_layout((1,)), hosts, random.Random(1), 9) == []


def test_an_internal_topic_does_not_shrink_with_the_cluster() -> None:
    layout = a_layout((1, 2, 3), internal=True)
    assert plan(layout, {1: LIVE, 2: LIVE, 3: LOST}, random.Random(1), 9) == []


def test_a_drained_broker_is_emptied_and_its_leaders_are_distributed() -> None:
    hosts = {1: DRAINING, 2: LIVE, 3: LIVE, 4: LIVE}
    layout = a_layout(*[(1, 2, 3)] * 6)
    found, moves = settled(layout, hosts)
    assert moves == 6
    assert not any(1 in nodes for nodes in found.replicas.values())
    _, leads = loads(found, hosts)
    assert leads == [2, 2, 2]


def test_nothing_is_rebalanced_while_a_broker_is_absent() -> None:
    layout = a_layout(*[(1,)] * 6)
    assert plan(layout, {1: LIVE, 2: LIVE, 3: AWAY}, random.Random(1), 9, balances=True) == []
    assert plan(layout, {1: LIVE, 2: LIVE, 3: LOST}, random.Random(1), 9, balances=True) != []


def test_a_new_broker_gets_partitions_of_every_topic() -> None:
    ours = {(TOPIC, index): (1,) for index in range(4)}
    theirs = {(OTHER, index): (1,) for index in range(4)}
    layout = Layout(replicas={**ours, **theirs})
    found, _ = settled(layout, {1: LIVE, 2: LIVE}, balances=True)
    assert Counter(slot[0] for slot, nodes in found.replicas.items() if nodes == (2,)) == {
        TOPIC: 2,
        OTHER: 2,
    }


def test_leaders_are_balanced_without_moving_a_record() -> None:
    layout = a_layout(*[(1, 2, 3)] * 6)
    found, _ = settled(layout, dict.fromkeys((1, 2, 3), LIVE), balances=True)
    assert loads(found, dict.fromkeys((1, 2, 3), LIVE)) == ([6, 6, 6], [2, 2, 2])


def test_a_cluster_is_unbalanced_when_a_broker_has_less_than_half_of_its_share() -> None:
    hosts = dict.fromkeys((1, 2, 3), LIVE)
    assert is_lopsided(a_layout(*[(1, 2)] * 4), hosts)
    assert not is_lopsided(a_layout((1, 2), (2, 3), (3, 1)), hosts)
    assert not is_lopsided(a_layout((1,)), hosts)
    assert not is_lopsided(a_layout(*[(1, 2)] * 4), {1: LIVE, 2: LIVE, 3: DRAINING})
    assert not is_lopsided(a_layout(), {})


def test_replication_is_raised_across_racks_and_lowered_where_it_costs_least() -> None:
    hosts = {1: Host(rack="a"), 2: Host(rack="a"), 3: Host(rack="b"), 4: Host(rack="c")}
    raised = set_replication(a_layout((1,), (2,)), TOPIC, 3, hosts, random.Random(1))
    assert [(move.nodes[0], set(move.nodes)) for move in raised] == [(1, {1, 3, 4}), (2, {2, 3, 4})]
    lowered = set_replication(a_layout((1, 2, 3)), TOPIC, 2, hosts, random.Random(1))
    assert lowered == [PlannedMove(TOPIC, 0, (1, 3))]
    away = {**hosts, 1: replace(hosts[1], is_live=False)}
    lowered = set_replication(a_layout((1, 2, 3)), TOPIC, 2, away, random.Random(1))
    assert lowered == [PlannedMove(TOPIC, 0, (2, 3))]
    assert set_replication(a_layout((1, 2)), TOPIC, 2, hosts, random.Random(1)) == []


@pytest.mark.parametrize("replication", [0, 4])
def test_more_replicas_than_brokers_are_refused(replication: int) -> None:
    hosts = {1: LIVE, 2: LIVE, 3: LIVE, 4: DRAINING}
    with pytest.raises(InvalidReplicas):
        set_replication(a_layout((1, 2)), TOPIC, replication, hosts, random.Random(1))
