"""Callbacks in the client's settings that raise: it is reported, and no call waits forever."""

import asyncio
import json
from typing import Any

import pytest

from kafkaesque.errors import PatternError
from kafkaesque.patterns import Delivery, publish, worker
from tests.patterns.waiting import run, until

pytestmark = pytest.mark.compat


def client_that_fails(bootstrap: str, kind: str) -> dict[str, Any]:
    """Return settings in which only consumers, or only producers, have a callback that raises."""

    def fail(statistics: str) -> None:
        if json.loads(statistics)["type"] == kind:
            raise LookupError("no such gauge")

    return {"bootstrap.servers": bootstrap, "statistics.interval.ms": 50, "stats_cb": fail}


def test_a_worker_with_a_failing_callback_ends_and_reports_it(bootstrap: str, topic: str) -> None:
    async def take(_: Delivery) -> None:
        pass

    async def story() -> None:
        async with worker(client_that_fails(bootstrap, "consumer"), topic, take) as one:
            await one.run()

    with pytest.raises(PatternError, match="LookupError: no such gauge"):
        run(story())


def test_a_publisher_with_a_failing_callback_reports_it_and_continues(
    bootstrap: str, topic: str
) -> None:
    told: list[object] = []

    async def story() -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        async with publish(client_that_fails(bootstrap, "producer")) as publisher:
            await until(lambda: bool(told))
            return (await publisher.send(topic, "x")).offset

    assert run(story()) == 0
    assert isinstance(told[0], LookupError)
