"""Assignors give each partition to a subscriber, evenly, and move none without need."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.machines.groups.assignors import (
    ASSIGNORS,
    Candidate,
    assign_range,
    assign_uniform,
    chosen_assignor,
)

TOPICS = [bytes([number]) * 16 for number in range(4)]


def member(
    name: str, *topics: int, before: frozenset[tuple[bytes, int]] = frozenset()
) -> Candidate:
    return Candidate(
        member_id=name, rank=name, topics={TOPICS[number] for number in topics}, before=before
    )


wanted = st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=6)
counts = st.lists(st.integers(0, 7), min_size=4, max_size=4)


@given(first=wanted, second=wanted, sizes=counts, name=st.sampled_from(sorted(ASSIGNORS)))
def test_each_partition_goes_to_a_subscriber(
    first: list[set[int]], second: list[set[int]], sizes: list[int], name: str
) -> None:
    topics = dict(zip(TOPICS, sizes, strict=True))
    before: dict[str, set[tuple[bytes, int]]] = {}
    for round_ in (first, second):
        members = [
            member(f"m{n}", *wishes, before=frozenset(before.get(f"m{n}", ())))
            for n, wishes in enumerate(round_)
        ]
        before = ASSIGNORS[name](members, topics)
        given = [place for share in before.values() for place in share]
        asked = set[bytes]().union(*(one.topics for one in members))
        assert sorted(given) == [(t, i) for t, n in topics.items() if t in asked for i in range(n)]
        for one in members:
            assert {topic for topic, _ in before[one.member_id]} <= one.topics


@given(sizes=counts, old=st.integers(1, 6), new=st.integers(1, 6))
def test_uniform_is_even_and_moves_no_more_than_it_must(
    sizes: list[int], old: int, new: int
) -> None:
    topics = dict(zip(TOPICS, sizes, strict=True))
    before = assign_uniform([member(f"m{n}", 0, 1, 2, 3) for n in range(old)], topics)
    after = assign_uniform(
        [
            member(f"m{n}", 0, 1, 2, 3, before=frozenset(before.get(f"m{n}", ())))
            for n in range(new)
        ],
        topics,
    )
    loads = [len(share) for share in after.values()]
    assert max(loads) - min(loads) <= 1
    total = sum(sizes)
    kept = sum(len(before.get(name, set()) & share) for name, share in after.items())
    loads_before = sorted((len(share) for share in before.values()), reverse=True)
    size, rest = divmod(total, new)
    most = sum(min(b, size + (n < rest)) for n, b in enumerate(loads_before[:new]))
    assert kept == most


def test_uniform_is_even_among_members_with_different_topics() -> None:
    topics = {TOPICS[0]: 6, TOPICS[1]: 6}
    shares = assign_uniform([member("a", 0), member("b", 0, 1), member("c", 1)], topics)
    assert sorted(map(len, shares.values())) == [4, 4, 4]


def test_range_gives_the_same_partition_numbers_of_each_topic_to_the_same_member() -> None:
    shares = assign_range([member("b", 0, 1), member("a", 0, 1)], {TOPICS[0]: 3, TOPICS[1]: 3})
    assert shares["a"] == {(topic, index) for topic in TOPICS[:2] for index in (0, 1)}
    assert shares["b"] == {(topic, 2) for topic in TOPICS[:2]}


def test_the_assignor_with_the_most_votes_is_used() -> None:
    assert chosen_assignor(["", ""]) == "uniform"
    assert chosen_assignor(["", "range"]) == "range"
    assert chosen_assignor(["uniform", "range"]) == "uniform"
