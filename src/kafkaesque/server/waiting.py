"""The bridge from the broker's callbacks to awaitables, for handlers."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.broker.watermark import Outcome
from kafkaesque.errors import KafkaesqueError

Waiter = asyncio.Future[Outcome]


def waiter() -> tuple[Waiter, Callable[[Outcome], None]]:
    """Return a future and the callback that completes it."""
    future: Waiter = asyncio.get_running_loop().create_future()

    def done(outcome: Outcome) -> None:
        if not future.done():
            future.set_result(outcome)

    return future, done


async def done(change: Callable[[Answer], None]) -> None:
    """Begin a change with the callback that it wants, and wait; raises what went wrong."""
    future: asyncio.Future[KafkaesqueError | None] = asyncio.get_running_loop().create_future()

    def answer(error: KafkaesqueError | None) -> None:
        if not future.done():
            future.set_result(error)

    change(answer)
    error = await future
    if error is not None:
        raise error


async def topic_created(
    broker: Broker, name: str, partitions: int, settings: Mapping[str, str]
) -> None:
    """Create a topic and wait until that is committed; raises what went wrong."""
    await done(partial(broker.create_topic, name, partitions, settings))
