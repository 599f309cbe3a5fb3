"""Members of a share group cover all partitions, evenly, and nothing moves without need."""

from collections.abc import Mapping, Sequence, Set
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.machines.groups.assignors import Candidate, Shares
from kafkaesque.machines.groups.share_assignor import assign_shared

TOPICS = [bytes([number]) * 16 for number in range(4)]
Wishes = Sequence[Set[int] | None]
"""What each member wants, by the number of the topic; None if it is not there."""

wishes = st.lists(st.none() | st.sets(st.integers(0, 3)), min_size=1, max_size=9)
counts = st.lists(st.integers(0, 6), min_size=4, max_size=4)
sizes = st.integers(0, 12)


def shared(wanted: Wishes, topics: Mapping[bytes, int], before: Shares) -> Shares:
    members = [
        Candidate(
            member_id=f"m{n}",
            rank=f"m{n}",
            topics={TOPICS[number] for number in numbers},
            before=before.get(f"m{n}", set()),
        )
        for n, numbers in enumerate(wanted)
        if numbers is not None
    ]
    return assign_shared(members, topics)


def alike(members: int, partitions: int, before: Shares | None = None) -> Shares:
    return shared([{0}] * members, {TOPICS[0]: partitions}, before or {})


def kept(before: Shares, after: Shares) -> int:
    return sum(len(share & before.get(name, set())) for name, share in after.items())


@given(history=st.lists(wishes, min_size=1, max_size=3), sizes=counts)
def test_all_is_covered_and_everyone_has_something(
    history: list[list[set[int] | None]], sizes: list[int]
) -> None:
    topics = dict(zip(TOPICS, sizes, strict=True))
    shares: Shares = {}
    for wanted in history:
        shares = shared(wanted, topics, shares)
        members = {f"m{n}": one for n, one in enumerate(wanted) if one is not None}
        assert shares.keys() == members.keys()
        for number, (topic, partitions) in enumerate(topics.items()):
            able = {name for name, numbers in members.items() if number in numbers}
            for index in range(partitions):
                readers = {name for name, share in shares.items() if (topic, index) in share}
                assert readers <= able
                assert len(readers) <= ceil(len(able) / partitions), "more members than fair"
                assert bool(readers) == bool(able), "a wanted partition is read"
        for name, numbers in members.items():
            can_read = any(topics[TOPICS[number]] for number in numbers)
            assert bool(shares[name]) == can_read, "everyone has something"


@given(members=st.lists(sizes, min_size=2, max_size=4), partitions=st.integers(1, 8))
def test_members_alike_are_balanced(members: list[int], partitions: int) -> None:
    shares: Shares = {}
    for count in members:
        shares = alike(count, partitions, shares)
        if not count:
            continue
        loads = sorted(map(len, shares.values()))
        assert loads[-1] - loads[0] <= 1
        assert sum(loads) == max(count, partitions), "shared only if there are too few partitions"
        readers = [
            sum((TOPICS[0], index) in share for share in shares.values())
            for index in range(partitions)
        ]
        assert max(readers) - min(readers) <= 1


@given(old=st.integers(1, 12), new=st.integers(1, 12), partitions=st.integers(1, 8))
def test_as_little_as_possible_moves(old: int, new: int, partitions: int) -> None:
    before = alike(old, partitions)
    after = alike(new, partitions, before)
    if new <= partitions:
        # What one member alone can keep: a fair share of partitions nobody else keeps.
        size, rest = divmod(partitions, new)
        there = sorted((before.get(f"m{n}", set()) for n in range(new)), key=len, reverse=True)
        if old <= partitions:
            most = sum(min(len(had), size + (n < rest)) for n, had in enumerate(there))
        else:
            most = len(set().union(*there))
        assert kept(before, after) == most
    else:
        size, rest = divmod(new, partitions)
        had = [name for name in after if name in before]
        readers = sorted(
            (sum((TOPICS[0], i) in before[name] for name in had) for i in range(partitions)),
            reverse=True,
        )
        if old >= partitions:
            most = sum(min(count, size + (n < rest)) for n, count in enumerate(readers))
        else:
            most = len(had)  # each keeps one of what it had
        assert kept(before, after) == most


@given(history=st.lists(wishes, min_size=1, max_size=3), sizes=counts)
def test_what_is_assigned_comes_to_rest(
    history: list[list[set[int] | None]], sizes: list[int]
) -> None:
    topics = dict(zip(TOPICS, sizes, strict=True))
    shares: Shares = {}
    for wanted in history:
        shares = shared(wanted, topics, shares)
    for _ in range(4):
        before, shares = shares, shared(history[-1], topics, shares)
    assert shares == before


@given(members=st.integers(1, 12), partitions=st.integers(0, 8), old=st.integers(0, 12))
def test_members_alike_keep_all_that_they_have_when_nothing_changes(
    members: int, partitions: int, old: int
) -> None:
    shares = alike(members, partitions, alike(old, partitions))
    assert alike(members, partitions, shares) == shares


def test_a_member_that_joins_one_partition_leaves_the_others_alone() -> None:
    before = alike(4, 3)
    after = alike(5, 3, before)
    assert kept(before, after) == 4


def test_one_who_wants_only_what_another_reads_reads_it_too() -> None:
    shares = shared([{0}, {0}, {0, 1}], {TOPICS[0]: 1, TOPICS[1]: 3}, {})
    assert shares["m0"] == shares["m1"] == {(TOPICS[0], 0)}
    assert shares["m2"] == {(TOPICS[1], index) for index in range(3)}


def test_members_that_want_different_topics_are_balanced_again_when_some_leave() -> None:
    topics = {TOPICS[0]: 2, TOPICS[1]: 1}
    before = shared([*[{0}] * 6, {1}], topics, {})
    left = [n for n in range(6) if before[f"m{n}"] == {(TOPICS[0], 0)}]
    assert len(left) == 3
    after = shared([*({0} if n in left else None for n in range(6)), {1}], topics, before)
    readers = [sum((TOPICS[0], i) in share for share in after.values()) for i in range(2)]
    assert sorted(readers) == [1, 2]
    assert kept(before, after) == 3, "of four, one has moved"


def test_members_that_stay_do_not_gather_on_one_partition() -> None:
    topics = {TOPICS[0]: 2, TOPICS[1]: 1}
    before = {f"m{n}": {(TOPICS[0], int(n > 3))} for n in range(5)}
    after = shared([*[{0}] * 5, {1}], topics, before)
    readers = [sum((TOPICS[0], i) in share for share in after.values()) for i in range(2)]
    assert readers == [3, 2]
    assert kept(before, after) == 4
