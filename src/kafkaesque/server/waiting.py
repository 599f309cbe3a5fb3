"""The bridge from the broker's callbacks to awaitables, for handlers."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.errors import KafkaesqueError

WAIT_MS_MAX = 600_000
"""However long a client is ready to wait for an answer: beyond it, it is most likely gone."""


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
