"""Placement: even replicas and leaders, separate racks, and the same result for the same seed."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.machines.catalog.catalog_errors import InvalidReplicas
from kafkaesque.machines.catalog.placement import place

racks = st.dictionaries(st.integers(1, 9), st.sampled_from(["", "a", "b", "c"]), min_size=1)


@given(racks, st.integers(1, 40), st.data())
def test_every_partition_is_on_as_many_distinct_brokers_as_requested(
    racks: dict[int, str], partitions: int, data: st.DataObject
) -> None:
    replication = data.draw(st.integers(1, len(racks)))
    placed = place(racks, [], partitions, replication, random.Random(1))
    assert len(placed) == partitions
    for nodes in placed:
        assert len(set(nodes)) == len(nodes) == replication
        assert set(nodes) <= racks.keys()


@pytest.mark.requirement("REP-1")
@given(st.integers(1, 9), st.integers(1, 60), st.data())
def test_leaders_and_replicas_are_spread_evenly(
    brokers: int, partitions: int, data: st.DataObject
) -> None:
    replication = data.draw(st.integers(1, brokers))
    nodes = range(1, brokers + 1)
    placed = place(dict.fromkeys(nodes, ""), [], partitions, replication, random.Random(2))
    leads = Counter(one[0] for one in placed)
    holds = Counter(node for one in placed for node in one)
    assert max(leads[n] for n in nodes) - min(leads[n] for n in nodes) <= 1
    assert max(holds[n] for n in nodes) - min(holds[n] for n in nodes) <= 2


@given(racks, st.integers(1, 20), st.integers(1, 3))
def test_replicas_are_in_different_racks_as_long_as_there_are_more(
    racks: dict[int, str], partitions: int, replication: int
) -> None:
    named = {node: rack or f"alone-{node}" for node, rack in racks.items()}
    replication = min(replication, len(named))
    for nodes in place(named, [], partitions, replication, random.Random(3)):
        reached = {named[node] for node in nodes}
        assert len(reached) == min(replication, len(set(named.values())))


@given(racks, st.integers(0, 1000))
def test_the_same_random_seed_gives_the_same_placement(racks: dict[int, str], seed: int) -> None:
    first = place(racks, [], 10, 1, random.Random(seed))
    assert place(racks, [], 10, 1, random.Random(seed)) == first


def test_existing_replicas_count() -> None:
    placed = place({1: "", 2: "", 3: ""}, [(1, 2)] * 4, 4, 1, random.Random(4))
    assert Counter(one[0] for one in placed) == {3: 2, 2: 2}  # 1 leads four already


def test_small_topics_do_not_all_start_with_the_same_broker() -> None:
    firsts = {place({1: "", 2: "", 3: ""}, [], 1, 1, random.Random(s))[0] for s in range(30)}
    assert len(firsts) == 3


@pytest.mark.parametrize("replication", [0, 4])
def test_more_replicas_than_brokers_are_refused(replication: int) -> None:
    with pytest.raises(InvalidReplicas):
        place({1: "", 2: "", 3: ""}, [], 1, replication, random.Random(5))
