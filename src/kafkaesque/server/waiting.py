"""The bridge from the broker's callbacks to awaitables, for handlers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.errors import (
    ChangeInProgress,
    KafkaesqueError,
    LeaderNotReady,
    NotController,
    NotLeader,
    SettingsChanged,
)

WAIT_MS_MAX = 600_000
"""However long a client is ready to wait for an answer: beyond it, it is most likely gone."""


LEADER_WAIT_S_MAX = 10.0
"""Longer than any election; those who ask for changes wait for 30 s and more."""

CHANGES_AT_ONCE_MAX = 50
"""Changes of one request that are under way: each waits for a commit, a new topic for leaders."""

_LOOK_S = 0.1

T = TypeVar("T")


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


async def carried_out(change: Callable[[Answer], None]) -> None:
    """The same for a change of the catalog; waits for a while if nobody leads that just now.

    To be refused for want of a leader is to know that nothing was done, so it can be asked again.
    Raises NotController if that takes too long.
    """
    loop = asyncio.get_running_loop()
    late_s = loop.time() + LEADER_WAIT_S_MAX
    while True:
        try:
            return await done(change)
        except (NotLeader, LeaderNotReady, ChangeInProgress):
            if loop.time() >= late_s:
                raise NotController("nobody leads the catalog just now") from None
        except SettingsChanged:  # this broker's copy of them is a moment behind
            if loop.time() >= late_s:
                raise
        await asyncio.sleep(_LOOK_S)


async def together(changes: Iterable[Awaitable[T]]) -> list[T]:
    """Carry out the changes of one request, many at a time; return what they do, in their order."""
    left = iter(changes)
    results: list[T] = []
    while some := list(islice(left, CHANGES_AT_ONCE_MAX)):
        # Most requests name one topic, for which no task is needed.
        results += [await some[0]] if len(some) == 1 else await asyncio.gather(*some)
    return results


async def is_current(broker: Broker) -> bool:
    """Return whether this broker's catalog surely holds all that was decided before the call.

    Who would say that a topic does not exist asks first, and looks again afterwards: clients take
    such a word for final, and this broker's copy may be behind. Bounded by the broker.
    """
    if broker.confirming.is_certain:
        return True
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def told(answer: bool) -> None:  # noqa: FBT001
        if not future.done():
            future.set_result(answer)

    broker.confirming.when_current(told)
    return await future


async def topic_created(
    broker: Broker, name: str, partitions: int, settings: Mapping[str, str]
) -> None:
    """Create a topic and wait until that is committed; raises what went wrong."""
    await done(partial(broker.create_topic, name, partitions, settings))
