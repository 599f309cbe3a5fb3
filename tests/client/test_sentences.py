"""Sentences that name several things."""

import pytest

from kafkaesque.client.sentences import listed, named_brokers


@pytest.mark.parametrize(
    ("some", "text"), [([1], "1"), ([1, 2], "1 and 2"), (["a", "b", "c"], "a, b and c")]
)
def test_the_last_of_several_is_joined_by_a_word(some: list[object], text: str) -> None:
    assert listed(some) == text


@pytest.mark.parametrize(("nodes", "text"), [([2], "broker 2"), ([2, 3], "brokers 2 and 3")])
def test_brokers_are_named_in_the_singular_or_plural(nodes: list[int], text: str) -> None:
    assert named_brokers(nodes) == text
