"""How often a message is tried, and where it waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import InvalidPattern
from kafkaesque.patterns.retry_plan import ATTEMPT, DUE, TIERS_MAX, Names, RetryPlan, due_ms


@given(st.lists(st.integers(0, 10_000), max_size=TIERS_MAX))
def test_a_message_passes_each_tier_once_and_is_then_dead(delays: list[int]) -> None:
    plan = RetryPlan(delays_ms=tuple(delays))
    attempt, tiers = 1, []
    while (tier := plan.next_tier(attempt)) is not None:
        tiers.append(tier)
        attempt = plan.attempt_of(((ATTEMPT, b"%d" % (attempt + 1)),))
    assert tiers == list(range(1, len(delays) + 1))
    assert attempt == plan.attempts_max


@given(st.binary(max_size=30) | st.none())
def test_any_header_gives_an_attempt_of_the_plan(value: bytes | None) -> None:
    plan = RetryPlan(delays_ms=(1, 2))
    assert 1 <= plan.attempt_of(((ATTEMPT, value),)) <= plan.attempts_max
    assert due_ms(((DUE, value),)) >= 0


def test_the_last_of_several_headers_counts() -> None:
    plan = RetryPlan(delays_ms=(1, 2))
    assert plan.attempt_of(((ATTEMPT, b"3"), (ATTEMPT, b"2"))) == 2


def test_names_consist_of_topic_and_group() -> None:
    names = Names(topic="orders", group="pack team", tiers=2)
    assert names.retries == ("orders.pack-team.retry-1", "orders.pack-team.retry-2")
    assert names.dead_letter == "orders.pack-team.dlq"


@pytest.mark.parametrize("topic", ["", "no spaces", "x" * 250, "x" * 246])
def test_names_that_are_invalid_for_topics_are_refused(topic: str) -> None:
    with pytest.raises(InvalidPattern):
        Names(topic=topic, group="g", tiers=1)


@pytest.mark.parametrize("delays", [(-1,), (1,) * (TIERS_MAX + 1)])
def test_invalid_plans_are_refused(delays: tuple[int, ...]) -> None:
    with pytest.raises(InvalidPattern):
        RetryPlan(delays_ms=delays)
