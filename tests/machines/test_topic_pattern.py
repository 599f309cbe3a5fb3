"""Patterns for topic names: the same answers as Python's engine, but always in bounded time."""

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.machines.groups.group_errors import InvalidExpression
from kafkaesque.machines.groups.topic_pattern import SETS_STATES_MAX, TopicPattern

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "[a-b.]", r"\.", r"\w", r"\d", "^", "$"])
TIMES = st.sampled_from(["", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])


def _join(parts: list[str]) -> str:
    return "".join(parts)


PATTERNS = st.recursive(
    st.tuples(ATOMS, TIMES).map(lambda pair: pair[0] + ("" if pair[0] in "^$" else pair[1])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(_join),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: f"({'|'.join(some)})"),
        st.tuples(inner, TIMES).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=6,
)


@given(pattern=PATTERNS, names=st.lists(st.text("ab.1-", max_size=6), max_size=5))
def test_a_pattern_matches_what_python_matches(pattern: str, names: list[str]) -> None:
    ours = TopicPattern(pattern)
    for name in names:
        assert ours.matches(name) is (re.fullmatch(pattern, name) is not None), (pattern, name)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^orders-.*", "orders-eu", "old-orders-eu"),
        ("orders", "orders", "orders2"),
        (r"[a-z]+\.v[0-9]{1,2}", "clicks.v12", "clicks.v123"),
        ("(a|b)c?$", "bc", "cc"),
        ("[]a-]+", "a-]", "b"),
    ],
)
def test_a_name_matches_as_a_whole(pattern: str, yes: str, no: str) -> None:
    found = TopicPattern(pattern)
    assert (found.matches(yes), found.matches(no)) == (True, False)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "[a", "*a", "a**", r"(a)\1", "(?=a)", "(?i)a", "a{2,1}", "a{x}", r"\b", "a{"),
        *("[b-a]", "a{999}{999}", "(a{999}){999}", "(" * 60 + ")" * 60, "a" * 1_001, "[[:alpha:]]"),
        "\\",
    ],
)
def test_a_pattern_that_is_wrong_or_has_no_time_bound_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidExpression):
        TopicPattern(pattern)


def test_a_pattern_that_makes_other_engines_run_forever_is_matched_at_once() -> None:
    pattern = TopicPattern("(a*)*(a|aa)+" + "a?" * 100 + "b")
    begin = time.process_time()
    assert not pattern.matches("a" * 249)
    assert time.process_time() - begin < 2


def test_a_patterns_cache_is_bounded_whatever_names_it_meets() -> None:
    pattern = TopicPattern("(a|b)*a(a|b){200}")
    chance = random.Random(1)
    for _ in range(30):
        name = "".join(chance.choice("ab") for _ in range(249))
        assert pattern.matches(name) == (name[-201] == "a")
        assert 0 < pattern.remembered <= SETS_STATES_MAX
