"""How tests wait for what others do, and read what they left."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafkaesque.patterns import RetryPlan, WorkerSettings, publish
from kafkaesque.patterns.engine import EngineSettings
from kafkaesque.patterns.letters import Letter, open_letters
from kafkaesque.patterns.retry_plan import Names

SECONDS_MAX = 30.0
T = TypeVar("T")

QUICK = WorkerSettings(
    retries=RetryPlan(delays_ms=(20, 40)),
    limits=EngineSettings(deadline_seconds=0.3, commit_seconds=0.05, drain_seconds=2),
)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine with a time limit."""
    return asyncio.run(asyncio.wait_for(coroutine, SECONDS_MAX))


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds; `run` limits how long."""
    while not condition():  # noqa: ASYNC110 - other threads and processes make it true
        await asyncio.sleep(0.01)


async def send_all(bootstrap: str, topic: str, *values: str, key: str | None = None) -> None:
    """Send messages, all of them acknowledged when it returns."""
    async with publish({"bootstrap.servers": bootstrap, "enable.idempotence": False}) as sender:
        for value in values:
            await sender.send(topic, value, key=key)


def letters(bootstrap: str, topic: str, group: str | None = None) -> list[Letter]:
    """Return the dead letters of a topic."""
    name = Names(topic=topic, group=group or topic, tiers=0).dead_letter
    return list(open_letters(bootstrap, name, {}))
