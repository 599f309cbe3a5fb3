"""How tests wait for other processes, and read their results."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import pytest

from kafkaesque.patterns import RetryPlan, WorkerSettings, publish
from kafkaesque.patterns.engine import EngineSettings
from kafkaesque.patterns.letters import Letter, open_letters
from kafkaesque.patterns.message import Headers
from kafkaesque.patterns.retry_plan import Names

SECONDS_MAX = 300.0
"""Only ends hanging tests: a busy machine may need long."""
T = TypeVar("T")

QUICK = WorkerSettings(
    retries=RetryPlan(delays_ms=(20, 40)),
    limits=EngineSettings(deadline_seconds=0.3, commit_seconds=0.05, drain_seconds=2),
)


def steps(known: Sequence[str], *quick: str) -> list[Any]:
    """Return the steps of a story as parameters; those that are not quick run in the long tests."""
    return [one if one in quick else pytest.param(one, marks=pytest.mark.long) for one in known]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine with a time limit."""
    return asyncio.run(asyncio.wait_for(coroutine, SECONDS_MAX))


def run_long(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in which a broker dies and others have to notice."""
    return asyncio.run(asyncio.wait_for(coroutine, 2 * SECONDS_MAX))


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; `run` limits how long."""
    while not condition():  # noqa: ASYNC110 - other threads and processes make it true
        await asyncio.sleep(0.01)


async def send_all(
    bootstrap: str,
    topic: str,
    *values: str,
    key: str | None = None,
    headers: Headers = (),
    is_idempotent: bool = False,
) -> None:
    """Send messages, all of them acknowledged when it returns.

    Where a broker may die meanwhile the producer must be idempotent, or a message may be
    duplicated. librdkafka takes up to a second for that, so other tests do without.
    """
    client = {"bootstrap.servers": bootstrap, "enable.idempotence": is_idempotent}
    async with publish(client) as sender:
        for value in values:
            await sender.send(topic, value, key=key, headers=headers)


def letters(bootstrap: str, topic: str, group: str | None = None) -> list[Letter]:
    """Return the dead letters of a topic."""
    name = Names(topic=topic, group=group or topic, tiers=0).dead_letter
    return list(open_letters(bootstrap, name, {}))
