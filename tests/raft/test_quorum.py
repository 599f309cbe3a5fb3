"""Majorities, against counting by brute force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.raft.quorum import agreed_index, is_majority, majority

nodes = st.sets(st.integers(min_value=1, max_value=9))


@given(st.integers(min_value=1, max_value=99))
def test_two_majorities_always_share_a_voter_and_none_is_larger_than_needed(count: int) -> None:
    assert 2 * majority(count) > count
    assert 2 * (majority(count) - 1) <= count


@given(granted=nodes, voters=nodes.filter(bool))
def test_only_voters_count_for_a_majority(granted: set[int], voters: set[int]) -> None:
    assert is_majority(granted, voters) == (2 * len(granted & voters) > len(voters))


@given(st.lists(st.integers(min_value=0, max_value=20), min_size=1, max_size=9))
def test_the_agreed_index_is_the_highest_that_a_majority_has(matches: list[int]) -> None:
    reached = [
        index
        for index in range(max(matches) + 1)
        if 2 * sum(1 for match in matches if match >= index) > len(matches)
    ]
    assert agreed_index(matches) == max(reached)


@pytest.mark.parametrize(("count", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_an_even_group_needs_one_more_than_half(count: int, needed: int) -> None:
    assert majority(count) == needed
