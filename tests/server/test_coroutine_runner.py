"""A handler runs at once until it waits, and resumes at the end of the event that woke it."""

import asyncio
from typing import TypeVar

import pytest

from kafkaesque.server.requests import coroutine_runner
from kafkaesque.server.requests.coroutine_runner import Moment, Steps
from kafkaesque.server.requests.event_queue import Turn

SECONDS_MAX = 120
T = TypeVar("T")


def same(value: T) -> T:
    """Return a handler's result unchanged."""
    return value


def test_a_handler_that_never_waits_ends_at_once() -> None:
    async def handler() -> int:
        return 7

    async def go() -> None:
        assert coroutine_runner.begin(handler(), Turn(), same) == 7

    asyncio.run(go())


def test_a_handlers_result_is_finished_whether_it_waited_or_not() -> None:
    async def at_once() -> int:
        return 7

    async def later() -> int:
        await asyncio.sleep(0)
        return 8

    async def go() -> None:
        assert coroutine_runner.begin(at_once(), Turn(), str) == "7"
        steps = coroutine_runner.begin(later(), Turn(), str)
        assert isinstance(steps, Steps)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        steps.when_done(lambda: done.set_result(None), 0.0)
        await done
        assert steps.answer() == "8"

    asyncio.run(go())


def test_a_failure_to_finish_belongs_to_the_step() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        turn, moment = Turn(), Moment[int]()
        done: asyncio.Future[None] = loop.create_future()

        async def handler() -> int:
            return await moment

        def event() -> None:
            steps = coroutine_runner.begin(handler(), turn, lambda value: 1 // value)
            assert isinstance(steps, Steps)
            turn.begin()
            moment.come(0)
            turn.end()
            assert steps.is_done
            with pytest.raises(ZeroDivisionError):
                steps.answer()
            done.set_result(None)

        loop.call_soon(event)
        await done

    asyncio.run(go())


def outside_of_tasks(test: "asyncio.Future[None]", turn: Turn, moment: Moment[int]) -> Steps[int]:
    """Start a handler that waits for a moment, outside of any task, like a connection."""

    async def handler() -> int:
        return 1 + await moment

    steps = coroutine_runner.begin(handler(), turn, same)
    assert isinstance(steps, Steps)
    steps.when_done(lambda: test.set_result(None), 0.0)
    return steps


def test_a_handler_that_waits_for_a_moment_resumes_at_the_end_of_its_event() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        turn, moment = Turn(), Moment[int]()
        done: asyncio.Future[None] = loop.create_future()

        def event() -> None:
            steps = outside_of_tasks(done, turn, moment)
            turn.begin()
            moment.come(1)
            assert not steps.is_done
            turn.end()
            assert steps.is_done
            assert steps.answer() == 2

        loop.call_soon(event)
        await done

    asyncio.run(go())


def test_a_handler_woken_outside_of_an_event_resumes_soon() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        turn, moment = Turn(), Moment[int]()
        done: asyncio.Future[None] = loop.create_future()
        loop.call_soon(outside_of_tasks, done, turn, moment)
        loop.call_soon(moment.come, 1)
        await done

    asyncio.run(go())


def test_only_the_first_arrival_of_a_moment_counts() -> None:
    async def go() -> None:
        moment = Moment[int]()
        moment.come(1)
        moment.come(2)
        assert await moment == 1

    asyncio.run(go())


def test_a_task_can_wait_for_a_moment_too() -> None:
    async def go() -> None:
        moment = Moment[int]()
        asyncio.get_running_loop().call_soon(moment.come, 3)
        async with asyncio.timeout(SECONDS_MAX):
            assert await moment == 3

    asyncio.run(go())


def test_a_handler_that_waits_for_anything_else_continues_as_a_task() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        first, second = loop.create_future(), Moment[int]()
        done: asyncio.Future[None] = loop.create_future()
        seen: list[str] = []

        async def handler() -> int:
            seen.append("begun")
            one: int = await first
            async with asyncio.timeout(SECONDS_MAX):
                two = await second
            return one + two

        steps = coroutine_runner.begin(handler(), Turn(), same)
        assert isinstance(steps, Steps)
        assert seen == ["begun"]
        steps.when_done(lambda: done.set_result(None), 0.0)
        first.set_result(1)
        await asyncio.sleep(0)
        second.come(2)
        await done
        assert steps.answer() == 3

    asyncio.run(go())


def test_an_immediate_error_is_raised_and_a_later_one_is_kept() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        never = loop.create_future()
        done: asyncio.Future[None] = loop.create_future()

        async def at_once() -> None:
            raise KeyError

        async def later() -> None:
            await never

        with pytest.raises(KeyError):
            coroutine_runner.begin(at_once(), Turn(), same)
        steps = coroutine_runner.begin(later(), Turn(), same)
        assert isinstance(steps, Steps)
        steps.when_done(lambda: done.set_result(None), 0.0)
        never.set_exception(ValueError())
        await done
        with pytest.raises(ValueError):
            steps.answer()

    asyncio.run(go())


def test_an_error_after_a_moment_is_kept() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        moment = Moment[None]()
        done: asyncio.Future[None] = loop.create_future()

        async def handler() -> None:
            await moment
            raise ValueError

        def event() -> None:
            steps = coroutine_runner.begin(handler(), Turn(), same)
            assert isinstance(steps, Steps)
            steps.when_done(lambda: done.set_result(None), 0.0)
            moment.come(None)
            found.append(steps)

        found: list[Steps[None]] = []
        loop.call_soon(event)
        await done
        with pytest.raises(ValueError):
            found[0].answer()

    asyncio.run(go())


@pytest.mark.parametrize("kind", ["future", "moment"])
def test_a_cancellation_reaches_the_handler(kind: str) -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        cleaned: asyncio.Future[None] = loop.create_future()

        async def handler() -> None:
            try:
                if kind == "future":
                    await loop.create_future()
                else:
                    await Moment[None]()
            finally:
                cleaned.set_result(None)

        def event() -> None:
            steps = coroutine_runner.begin(handler(), Turn(), same)
            assert isinstance(steps, Steps)
            loop.call_soon(loop.call_soon, steps.cancel)

        loop.call_soon(event)
        async with asyncio.timeout(SECONDS_MAX):
            await cleaned

    asyncio.run(go())


def test_a_handler_cancelled_after_its_moment_came_does_not_resume() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        turn, moment = Turn(), Moment[int]()
        done: asyncio.Future[None] = loop.create_future()

        def event() -> None:
            steps = outside_of_tasks(done, turn, moment)
            turn.begin()
            moment.come(1)
            steps.cancel()
            turn.end()
            loop.call_soon(loop.stop)

        loop.call_soon(event)
        await done

    with pytest.raises(RuntimeError, match="stopped before"):
        asyncio.run(go())
