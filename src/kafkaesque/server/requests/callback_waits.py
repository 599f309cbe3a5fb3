"""The bridge from the broker's callbacks to awaitables, for handlers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.errors import ChangeInProgress, KafkaesqueError, LeaderNotReady, NotLeader
from kafkaesque.machines.catalog.catalog_errors import SettingsChanged
from kafkaesque.server.requests.errors import NotController

WAIT_MS_MAX = 600_000
"""The longest wait for a response, whatever the client allows: by then it is probably gone."""


LEADER_WAIT_S_MAX = 10.0
"""Longer than any election; clients wait 30 s and more for changes."""

CHANGES_AT_ONCE_MAX = 50
"""Changes of one request in progress: each waits for a commit, a new topic for leaders."""

_LOOK_S = 0.1

T = TypeVar("T")


async def done(change: Callable[[Answer], None]) -> None:
    """Start a change with its callback, and wait; raises its error."""
    future: asyncio.Future[KafkaesqueError | None] = asyncio.get_running_loop().create_future()

    def answer(error: KafkaesqueError | None) -> None:
        if not future.done():
            future.set_result(error)

    change(answer)
    error = await future
    if error is not None:
        raise error


async def carried_out(change: Callable[[Answer], None]) -> None:
    """Like `done`, for a catalog change; retries for a while if the catalog has no leader.

    A refusal for lack of a leader means that nothing was done, so the change can be retried. Raises
    NotController if that takes too long.
    """
    loop = asyncio.get_running_loop()
    late_s = loop.time() + LEADER_WAIT_S_MAX
    while True:
        try:
            return await done(change)
        except (NotLeader, LeaderNotReady, ChangeInProgress):
            if loop.time() >= late_s:
                raise NotController("the catalog has no leader now") from None
        except SettingsChanged:  # this broker's copy is slightly behind
            if loop.time() >= late_s:
                raise
        await asyncio.sleep(_LOOK_S)


async def together(changes: Iterable[Awaitable[T]]) -> list[T]:
    """Carry out one request's changes, many at a time; return the results in order."""
    left = iter(changes)
    results: list[T] = []
    while some := list(islice(left, CHANGES_AT_ONCE_MAX)):
        # Most requests name one topic, which needs no task.
        results += [await some[0]] if len(some) == 1 else await asyncio.gather(*some)
    return results


async def is_current(broker: Broker) -> bool:
    """Return whether this broker's catalog surely holds all earlier decisions.

    Callers check this before they report a topic as unknown, and then look again: clients take such
    a response as final, and this broker's copy may be behind. The broker bounds the wait.
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
    """Create a topic and wait for the commit; raises the error."""
    await done(partial(broker.create_topic, name, partitions, settings))
