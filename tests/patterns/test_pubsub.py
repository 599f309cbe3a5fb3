"""Subscriptions that come and go, and tables that follow a topic."""

import asyncio

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from kafkaesque.errors import InvalidPattern, TableFull
from kafkaesque.patterns import publish, subscribe, table
from tests.patterns.waiting import run, send_all, until

pytestmark = pytest.mark.compat


@pytest.mark.requirement("PAT-2")
def test_a_subscription_gets_everything_after_its_start_and_nothing_before(
    bootstrap: str, topic: str
) -> None:
    async def story() -> list[str]:
        await send_all(bootstrap, topic, "before")
        async with subscribe(bootstrap, topic) as first, subscribe(bootstrap, topic) as second:
            await send_all(bootstrap, topic, "1", "2", key="k")
            return [(await anext(one)).text for one in (first, first, second, second)]

    assert run(story()) == ["1", "2", "1", "2"]


@pytest.mark.requirement("PAT-2")
def test_topics_can_be_added_and_dropped_at_run_time(bootstrap: str, topic: str) -> None:
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


def grow(bootstrap: str, topic: str, count: int) -> None:
    """Give a topic more partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(10)


@pytest.mark.requirement("PAT-2")
def test_an_added_partition_is_read_from_its_beginning(bootstrap: str, topic: str) -> None:
    async def story() -> str:
        async with subscribe(bootstrap, topic, look_seconds=0.2) as subscription:
            await asyncio.to_thread(grow, bootstrap, topic, 5)
            async with publish(bootstrap) as publisher:
                await publisher.send(topic, "in the new one", partition=4)
            return (await anext(subscription)).text

    assert run(story()) == "in the new one"


def test_an_expression_covers_existing_and_future_topics(bootstrap: str, topic: str) -> None:
    async def story() -> list[str]:
        await send_all(bootstrap, f"{topic}.old", "before")
        expression = f"^{topic}\\."
        async with subscribe(bootstrap, expression, look_seconds=0.2) as subscription:
            await send_all(bootstrap, f"{topic}.old", "old")
            heard = [(await anext(subscription)).text]
            await send_all(bootstrap, f"{topic}.new", "new")
            await send_all(bootstrap, f"{topic}-other", "not meant")
            heard.append((await anext(subscription)).text)
            await subscription.drop(expression)
            return [*heard, *subscription.topics]

    assert run(story()) == ["old", "new"]


def test_an_invalid_expression_is_refused(bootstrap: str) -> None:
    async def story() -> None:
        async with subscribe(bootstrap) as subscription:
            with pytest.raises(InvalidPattern):
                await subscription.add("^(")

    run(story())


def test_a_slow_reader_buffers_no_more_than_its_limit_and_loses_nothing(
    bootstrap: str, topic: str
) -> None:
    async def story() -> list[str]:
        await send_all(bootstrap, topic, *map(str, range(3_000)), key="k")
        async with subscribe(bootstrap, topic, buffer_max=50, from_beginning=True) as slow:
            await until(lambda: len(slow._buffer) >= 50)
            assert len(slow._buffer) <= 50 + 1_000
            return [(await anext(slow)).text for _ in range(3_000)]

    assert run(story()) == list(map(str, range(3_000)))


def test_a_table_has_all_puts_and_no_deleted_keys(bootstrap: str, topic: str) -> None:
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


def test_a_table_with_more_keys_than_allowed_reports_it(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async with table(bootstrap, topic, keys_max=2) as small:
            await asyncio.gather(small.put("a", "1"), small.put("b", "2"))
            with pytest.raises(TableFull):
                await small.put("c", "3")

    run(story())


def test_a_table_follows_a_key_to_a_partition_that_came_later(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async with table(bootstrap, topic, look_seconds=0.2) as prices:
            await asyncio.gather(*(prices.put(f"key {n}", "old") for n in range(20)))
            await asyncio.to_thread(grow, bootstrap, topic, 5)
            async with table(bootstrap, topic) as other:  # it knows all five, as its sender does
                await asyncio.gather(*(other.put(f"key {n}", "new") for n in range(19)))
                await other.delete("key 19")
            wanted = {b"key %d" % n: b"new" for n in range(19)}
            await until(lambda: dict(prices) == wanted)
        async with table(bootstrap, topic) as later:
            assert dict(later) == wanted

    run(story())
