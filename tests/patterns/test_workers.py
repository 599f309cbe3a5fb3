"""Workers against a real broker: what is done, retried and buried, and in which order."""

import asyncio

import pytest

from kafkaesque.patterns import Delivery, RetryPlan, WorkerSettings, worker
from kafkaesque.patterns.engine import EngineSettings
from tests.patterns.waiting import QUICK, letters, run, send_all, until

pytestmark = pytest.mark.compat

NO_RETRIES = WorkerSettings(retries=RetryPlan(delays_ms=()), limits=QUICK.limits)


@pytest.mark.requirement("PAT-1")
def test_two_workers_share_a_queue_and_each_message_goes_to_one(bootstrap: str, topic: str) -> None:
    seen: list[str] = []

    async def story() -> None:
        async def take(delivery: Delivery) -> None:
            seen.append(delivery.text)

        async with worker(bootstrap, topic, take), worker(bootstrap, topic, take):
            await send_all(bootstrap, topic, *map(str, range(50)))
            await until(lambda: len(seen) >= 50)

    run(story())
    assert sorted(seen) == sorted(map(str, range(50)))


def test_messages_of_one_key_are_handled_in_order_and_one_at_a_time(
    bootstrap: str, topic: str
) -> None:
    seen: list[str] = []
    running: set[bytes | None] = set()

    async def story() -> None:
        async def take(delivery: Delivery) -> None:
            assert delivery.key not in running
            running.add(delivery.key)
            await asyncio.sleep(0)
            running.discard(delivery.key)
            seen.append(delivery.text)

        await send_all(bootstrap, topic, *map(str, range(40)), key="k")
        async with worker(bootstrap, topic, take, settings=NO_RETRIES):
            await until(lambda: len(seen) == 40)

    run(story())
    assert seen == list(map(str, range(40)))


def test_a_stopped_worker_has_committed_and_the_next_one_continues(
    bootstrap: str, topic: str
) -> None:
    seen: list[str] = []

    async def story() -> None:
        async def take(delivery: Delivery) -> None:
            seen.append(delivery.text)

        for count in (3, 6):
            await send_all(bootstrap, topic, *map(str, range(count - 3, count)))
            async with worker(bootstrap, topic, take, settings=QUICK):
                await until(lambda wanted=count: len(seen) >= wanted)  # type: ignore[misc]

    run(story())
    assert sorted(seen) == list("012345")


@pytest.mark.requirement("PAT-5")
def test_a_poison_message_is_retried_and_buried_and_stops_no_other(
    bootstrap: str, topic: str
) -> None:
    tried: list[int] = []
    good: list[str] = []

    async def story() -> None:
        async def take(delivery: Delivery) -> None:
            if delivery.text == "poison":
                tried.append(delivery.attempt)
                raise ValueError("cannot be read")
            good.append(delivery.text)

        async with worker(bootstrap, topic, take, settings=QUICK) as one:
            await send_all(bootstrap, topic, "a", "poison", "b")
            await until(lambda: one.dead == 1 and len(good) == 2)

    run(story())
    assert tried == [1, 2, 3]
    [letter] = letters(bootstrap, topic)
    assert letter.message.value == b"poison"
    assert letter.dead is not None
    assert (letter.dead.attempts, letter.dead.failure.reason) == (3, "cannot be read")
    assert letter.dead.origin.topic == topic


def test_a_message_that_succeeds_in_a_retry_is_not_a_dead_letter(
    bootstrap: str, topic: str
) -> None:
    async def story() -> None:
        done: list[int] = []

        async def take(delivery: Delivery) -> None:
            if delivery.attempt < 3:
                raise ConnectionError("not yet")
            done.append(delivery.attempt)

        async with worker(bootstrap, topic, take, settings=QUICK) as one:
            await send_all(bootstrap, topic, "late")
            await until(lambda: done == [3])
            assert one.retried == 2

    run(story())
    assert letters(bootstrap, topic) == []


def test_each_way_to_misbehave_has_its_own_reason(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async def take(delivery: Delivery) -> object:
            match delivery.text:
                case "hangs":
                    await asyncio.Event().wait()
                case "returns":
                    return 42
                case "refuses":
                    delivery.nack("not wanted", retry=False)
            return None

        async with worker(bootstrap, topic, take, settings=NO_RETRIES) as one:
            await send_all(bootstrap, topic, "hangs", "returns", "refuses", "works")
            await until(lambda: one.done == 4)

    run(story())
    found = {
        one.message.text: one.dead.failure.error for one in letters(bootstrap, topic) if one.dead
    }
    assert found == {"hangs": "HandlerTooSlow", "returns": "WrongType", "refuses": "Nacked"}


def test_a_handler_that_is_not_async_buries_its_messages(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        def take(_: Delivery) -> None:
            return None

        async with worker(bootstrap, topic, take, settings=NO_RETRIES) as one:  # type: ignore[arg-type]
            await send_all(bootstrap, topic, "x")
            await until(lambda: one.dead == 1)

    run(story())
    [letter] = letters(bootstrap, topic)
    assert letter.dead is not None and letter.dead.failure.error == "WrongType"


def test_a_slow_handler_may_extend_its_deadline_and_ack_before_it_ends(
    bootstrap: str, topic: str
) -> None:
    async def story() -> None:
        extended: list[str] = []

        async def take(delivery: Delivery) -> None:
            if delivery.text == "acked":
                delivery.ack()
                raise ValueError("this no longer matters")
            delivery.extend(10)
            await asyncio.sleep(0.6)
            extended.append(delivery.text)

        async with worker(bootstrap, topic, take, settings=NO_RETRIES) as one:
            await send_all(bootstrap, topic, "extended", "acked")
            await until(lambda: one.done == 2)
            assert (extended, one.dead) == (["extended"], 0)

    run(story())


def test_foreign_headers_make_it_a_first_attempt(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        seen: list[int] = []

        async def take(delivery: Delivery) -> None:
            seen.append(delivery.attempt)

        async with worker(bootstrap, topic, take, settings=QUICK) as one:
            await one._sender.send(
                topic, "x", headers=(("kafkaesque-attempt", b"\xff"), ("kafkaesque-due", b"soon"))
            )
            await until(lambda: bool(seen))
        assert seen == [1]

    run(story())


def test_no_more_handlers_run_at_once_than_allowed(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        running = 0
        most = 0

        async def take(_: Delivery) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

        limits = EngineSettings(concurrency=3, in_flight_max=5)
        settings = WorkerSettings(retries=RetryPlan(delays_ms=()), limits=limits)
        await send_all(bootstrap, topic, *map(str, range(60)))
        async with worker(bootstrap, topic, take, settings=settings) as one:
            await until(lambda: one.done == 60)
        assert most == 3

    run(story())
