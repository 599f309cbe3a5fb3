"""Subscriptions that come and go, and tables that follow a topic."""

import asyncio

import pytest

from kafkaesque.errors import TableFull
from kafkaesque.patterns import publish, subscribe, table
from tests.patterns.waiting import run, send_all, until

pytestmark = pytest.mark.compat


@pytest.mark.requirement("PAT-2")
def test_a_subscription_gets_all_that_comes_after_it_and_nothing_before(
    bootstrap: str, topic: str
) -> None:
    async def story() -> list[str]:
        await send_all(bootstrap, topic, "before")
        async with subscribe(bootstrap, topic) as first, subscribe(bootstrap, topic) as second:
            await send_all(bootstrap, topic, "1", "2", key="k")
            return [(await anext(one)).text for one in (first, first, second, second)]

    assert run(story()) == ["1", "2", "1", "2"]


@pytest.mark.requirement("PAT-2")
def test_topics_are_added_and_dropped_while_it_runs(bootstrap: str, topic: str) -> None:
    other = f"{topic}-other"

    async def story() -> list[str]:
        async with subscribe(bootstrap, topic) as subscription, publish(bootstrap) as publisher:
            await subscription.add(other)
            await publisher.send(other, "added")
            seen = [(await anext(subscription)).text]
            await subscription.drop(topic)
            await publisher.send(topic, "dropped")
            await publisher.send(other, "kept")
            return [*seen, (await anext(subscription)).text, *subscription.topics]

    assert run(story()) == ["added", "kept", other]


def test_a_slow_reader_holds_no_more_than_its_buffer_and_loses_nothing(
    bootstrap: str, topic: str
) -> None:
    async def story() -> list[str]:
        await send_all(bootstrap, topic, *map(str, range(3_000)), key="k")
        async with subscribe(bootstrap, topic, buffer_max=50, from_beginning=True) as slow:
            await until(lambda: len(slow._buffer) >= 50)
            assert len(slow._buffer) <= 50 + 1_000
            return [(await anext(slow)).text for _ in range(3_000)]

    assert run(story()) == list(map(str, range(3_000)))


def test_a_table_has_what_was_put_and_no_longer_what_was_deleted(
    bootstrap: str, topic: str
) -> None:
    async def story() -> None:
        async with table(bootstrap, topic) as prices, table(bootstrap, topic) as other:
            await prices.put("tea", "3")
            await prices.put("tea", "4")
            await prices.put("coffee", "5")
            await prices.delete("coffee")
            assert dict(prices) == {b"tea": b"4"}
            await other.refresh()
            assert dict(other) == {b"tea": b"4"}
        async with table(bootstrap, topic) as later:
            assert (later[b"tea"], len(later)) == (b"4", 1)

    run(story())


def test_a_table_with_more_keys_than_allowed_says_so(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async with table(bootstrap, topic, keys_max=2) as small:
            await asyncio.gather(small.put("a", "1"), small.put("b", "2"))
            with pytest.raises(TableFull):
                await small.put("c", "3")

    run(story())
