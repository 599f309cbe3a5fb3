"""What an event woke runs at its end, in order, and never more than so much at once."""

import asyncio

import pytest

from kafkaesque.server.requests.event_queue import ACTIONS_MAX, Turn


def test_what_is_put_off_runs_in_order_when_the_event_ends() -> None:
    turn, seen = Turn(), list[int]()
    turn.begin()
    turn.soon(lambda: seen.append(1))
    turn.soon(lambda: seen.append(2))
    assert seen == []
    turn.end()
    assert seen == [1, 2]


def test_what_comes_of_it_runs_in_the_same_event() -> None:
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


def test_what_has_no_end_lets_others_have_their_turn() -> None:
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


def test_one_that_fails_does_not_keep_the_others_from_their_turn() -> None:
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
