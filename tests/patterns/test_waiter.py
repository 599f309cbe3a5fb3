"""A future whose task goes on within the call that brings the result."""

import asyncio
from contextvars import ContextVar

import pytest

from kafkaesque.patterns.waiter import Waiter
from tests.patterns.waiting import run

PLACE: ContextVar[str] = ContextVar("PLACE", default="nowhere")


def test_its_task_goes_on_before_the_call_returns_and_in_its_own_context() -> None:
    seen: list[object] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        waiter: Waiter[int] = Waiter(loop)

        def bring() -> None:
            waiter.bring(7)
            seen.append("brought")

        task = asyncio.current_task()
        loop.call_soon(bring)
        PLACE.set("in the task")
        seen.append(await waiter)
        seen.append(PLACE.get())
        seen.append(asyncio.current_task() is task)
        await asyncio.sleep(0)  # it can wait again, for others

    run(story())
    assert seen == [7, "in the task", True, "brought"]


def test_a_result_that_is_there_first_is_found() -> None:
    async def story() -> int:
        waiter: Waiter[int] = Waiter(asyncio.get_running_loop())
        waiter.bring(7)
        return await waiter.within(1)

    assert run(story()) == 7


def test_it_raises_when_nothing_comes_in_time() -> None:
    async def story() -> None:
        await Waiter[None](asyncio.get_running_loop()).within(0.001)

    with pytest.raises(TimeoutError):
        run(story())


def test_a_task_that_waits_can_be_cancelled() -> None:
    async def story() -> bool:
        waiter: Waiter[None] = Waiter(asyncio.get_running_loop())
        task = asyncio.ensure_future(waiter.within(10))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled() and waiter.cancelled()

    assert run(story())
