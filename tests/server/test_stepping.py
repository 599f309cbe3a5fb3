"""A handler runs at once until it waits, and goes on as a task."""

import asyncio

import pytest

from kafkaesque.server import stepping


def test_what_never_waits_ends_at_once() -> None:
    async def handler() -> int:
        return 7

    async def go() -> None:
        assert stepping.begin(handler(), asyncio.get_running_loop()) == 7

    asyncio.run(go())


def test_what_waits_goes_on_as_a_task() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        first, second = loop.create_future(), loop.create_future()
        seen: list[str] = []

        async def handler() -> int:
            seen.append("begun")
            one: int = await first
            async with asyncio.timeout(5):
                two: int = await second
            return one + two

        task = stepping.begin(handler(), loop)
        assert seen == ["begun"]
        assert isinstance(task, asyncio.Task)
        first.set_result(1)
        await asyncio.sleep(0)
        second.set_result(2)
        assert await task == 3

    asyncio.run(go())


def test_what_goes_wrong_at_once_is_raised_and_later_is_the_tasks() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        never = loop.create_future()

        async def at_once() -> None:
            raise KeyError

        async def later() -> None:
            await never

        with pytest.raises(KeyError):
            stepping.begin(at_once(), loop)
        task = stepping.begin(later(), loop)
        assert task is not None
        never.set_exception(ValueError())
        with pytest.raises(ValueError):
            await task

    asyncio.run(go())


def test_a_cancellation_reaches_the_handler() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        cleaned: list[str] = []

        async def handler() -> None:
            try:
                await loop.create_future()
            finally:
                cleaned.append("cleaned")

        task = stepping.begin(handler(), loop)
        assert task is not None
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cleaned == ["cleaned"]

    asyncio.run(go())
