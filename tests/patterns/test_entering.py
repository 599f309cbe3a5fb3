"""A failed entry leaves nothing behind: no thread, no topic."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException

from kafkaesque.errors import InvalidPattern, PatternError, TableFull
from kafkaesque.patterns import Delivery, request, subscribe, table, worker
from kafkaesque.patterns.connection import topic_counts
from kafkaesque.patterns.requester import AskerSettings
from kafkaesque.testing.ports import HeldPort
from tests.patterns.waiting import run, send_all, until

pytestmark = pytest.mark.compat

OURS = ("kafkaesque-reader", "kafkaesque-sender")
NO_CONSUMER = {"fetch.max.bytes": 2_000_000, "receive.message.max.bytes": 1_000_000}
"""Settings that producers accept and consumers refuse."""


def ours() -> set[threading.Thread]:
    """Return the threads of the patterns."""
    return {one for one in threading.enumerate() if one.name in OURS}


@pytest.fixture(autouse=True)
def _leaves_no_thread() -> Iterator[None]:
    before = ours()
    yield
    assert ours() <= before


def test_an_unreachable_broker_is_reported_within_the_deadline() -> None:
    held = HeldPort()
    nobody = f"127.0.0.1:{held.port}"

    async def story() -> None:
        with pytest.raises(PatternError, match=f"no broker at {nobody} answered within 0.5 s"):
            async with request(nobody, settings=AskerSettings(deadline_seconds=0.5)):
                pass

    run(story())


def test_a_subscription_with_an_invalid_expression_leaves_nothing(bootstrap: str) -> None:
    async def story() -> None:
        with pytest.raises(InvalidPattern):
            async with subscribe(bootstrap, "^["):
                pass

    run(story())


def test_a_table_with_more_keys_than_allowed_leaves_nothing(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async with table(bootstrap, topic) as large:
            await asyncio.gather(large.put("a", "1"), large.put("b", "2"))
        with pytest.raises(TableFull):
            async with table(bootstrap, topic, keys_max=1):
                pass

    run(story())


def test_a_requester_whose_consumer_cannot_be_created_leaves_nothing(
    bootstrap: str, topic: str
) -> None:
    client = {"bootstrap.servers": bootstrap, **NO_CONSUMER}

    async def story() -> None:
        with pytest.raises(KafkaException):
            async with request(client, settings=AskerSettings(reply_prefix=topic)):
                pass

    run(story())
    assert not [name for name in topic_counts(bootstrap) if name.startswith(topic)]


def test_a_worker_cancelled_before_it_has_joined_leaves_nothing(bootstrap: str, topic: str) -> None:
    async def take(_: Delivery) -> None:
        pass

    async def enter() -> None:
        async with worker(bootstrap, topic, take):
            raise AssertionError("it has joined")

    async def story() -> None:
        await send_all(bootstrap, topic, "x")
        before = len(ours())
        entering = asyncio.ensure_future(enter())
        await until(lambda: len(ours()) == before + 2)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering

    run(story())
