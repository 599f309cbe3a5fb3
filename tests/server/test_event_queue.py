"""Work that an event queues runs at its end, in order, and never too much at once."""

import asyncio

import pytest

from kafkaesque.server.requests.event_queue import ACTIONS_MAX, Turn


def test_deferred_work_runs_in_order_when_the_event_ends() -> None:
    turn, seen = Turn(), list[int]()
    turn.begin()
    turn.soon(lambda: seen.append(1))
    turn.soon(lambda: seen.append(2))
    assert seen == []
    turn.end()
    assert seen == [1, 2]


def test_work_deferred_by_deferred_work_runs_in_the_same_event() -> None:
    turn, seen = Turn(), list[int]()
    turn.begin()
    turn.soon(lambda: turn.soon(lambda: seen.append(1)))
    turn.end()
    assert seen == [1]


def test_outside_of_an_event_it_runs_in_the_next_turn_of_the_loop() -> None:
    async def go() -> None:
        turn, seen = Turn(), list[int]()
        turn.soon(lambda: seen.append(1))
        assert seen == []
        await asyncio.sleep(0)
        assert seen == [1]

    asyncio.run(go())


def test_endless_work_gives_way_to_others() -> None:
    async def go() -> None:
        turn, seen = Turn(), list[int]()

        def again() -> None:
            seen.append(1)
            turn.soon(again)

        turn.begin()
        turn.soon(again)
        turn.end()
        assert len(seen) == ACTIONS_MAX
        await asyncio.sleep(0)
        assert len(seen) == 2 * ACTIONS_MAX

    asyncio.run(go())


def test_a_failure_does_not_stop_the_others() -> None:
    async def go() -> None:
        turn, seen = Turn(), list[int]()
        turn.begin()
        turn.soon(lambda: dict[str, None]()["nothing"])
        turn.soon(lambda: seen.append(1))
        with pytest.raises(KeyError):
            turn.end()
        await asyncio.sleep(0)
        assert seen == [1]

    asyncio.run(go())
