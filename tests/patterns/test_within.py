"""Waiting for a future with a limit."""

import asyncio

import pytest

from kafkaesque.patterns.within import within
from tests.patterns.waiting import run


def test_a_result_is_returned_whether_it_is_there_or_arrives_later() -> None:
    async def story() -> list[int]:
        loop = asyncio.get_running_loop()
        there: asyncio.Future[int] = loop.create_future()
        there.set_result(7)
        coming: asyncio.Future[int] = loop.create_future()
        loop.call_soon(coming.set_result, 8)
        return [await within(there, 1), await within(coming, 1)]

    assert run(story()) == [7, 8]


def test_it_raises_when_nothing_arrives_in_time() -> None:
    async def story() -> None:
        await within(asyncio.get_running_loop().create_future(), 0.001)

    with pytest.raises(TimeoutError):
        run(story())


def test_a_waiting_task_can_be_cancelled() -> None:
    async def story() -> bool:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(within(future, 10))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled() and future.cancelled()

    assert run(story())
