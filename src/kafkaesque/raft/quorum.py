"""Majorities, as pure functions."""

from collections.abc import Collection, Iterable

from kafkaesque.types import Index, NodeId


def majority(count: int) -> int:
    """Return how many of `count` voters decide."""
    return count // 2 + 1


def is_majority(granted: Collection[NodeId], voters: Collection[NodeId]) -> bool:
    """Return whether the granting nodes include a majority of the voters; others do not count."""
    return sum(1 for node in voters if node in granted) >= majority(len(voters))


def agreed_index(matches: Iterable[Index]) -> Index:
    """Return the highest index that a majority has reached, given each voter's match."""
    ordered = sorted(matches, reverse=True)
    return ordered[majority(len(ordered)) - 1]
