"""Requests and their answers, against a real broker."""

import asyncio

import pytest

from kafkaesque.errors import NoAnswer, RequestFailed
from kafkaesque.patterns import AskerSettings, Delivery, reply, request, scatter
from kafkaesque.patterns.engine import EngineSettings
from kafkaesque.patterns.envelope import Request, answer_headers, request_headers
from tests.patterns.waiting import run, send_all, until

pytestmark = pytest.mark.compat

LIMITS = EngineSettings(deadline_seconds=0.3, commit_seconds=0.05, drain_seconds=2)


async def echo(delivery: Delivery) -> str | None:
    """Echo, or misbehave on request."""
    match delivery.text:
        case "fail":
            raise KeyError("card")
        case "hang":
            await asyncio.Event().wait()
        case "wrong":
            return 42  # type: ignore[return-value]  # that is the point
        case "nothing":
            return None
    return delivery.text


@pytest.mark.requirement("PAT-3")
def test_many_requests_at_once_each_get_their_own_answer(bootstrap: str, topic: str) -> None:
    async def story() -> list[bytes | None]:
        async with reply(bootstrap, topic, echo), request(bootstrap) as ask:
            return await asyncio.gather(*(ask(topic, str(n)) for n in range(300)))

    assert run(story()) == [str(n).encode() for n in range(300)]


@pytest.mark.requirement("PAT-3")
def test_an_unanswered_request_ends_at_its_deadline(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async with request(bootstrap) as ask:
            with pytest.raises(NoAnswer):
                await ask(topic, "anyone?", deadline_seconds=0.2)

    run(story())


def test_a_responder_that_fails_hangs_or_is_wrong_answers_so_and_continues(
    bootstrap: str, topic: str
) -> None:
    async def story() -> dict[str, str]:
        kinds = {}
        async with reply(bootstrap, topic, echo, limits=LIMITS), request(bootstrap) as ask:
            for text in ("fail", "hang", "wrong"):
                with pytest.raises(RequestFailed) as failed:
                    await ask(topic, text)
                kinds[text] = failed.value.kind
            assert await ask(topic, "nothing") is None
            assert await ask(topic, "fine") == b"fine"
        return kinds

    assert run(story()) == {"fail": "KeyError", "hang": "HandlerTooSlow", "wrong": "WrongType"}


def test_late_duplicate_and_foreign_answers_are_dropped(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        answered: list[Request] = []

        async def twice(delivery: Delivery) -> str:
            asked = {name: (value or b"").decode() for name, value in delivery.headers}
            one = Request(
                reply_to=asked["kafkaesque-reply-to"],
                correlation=asked["kafkaesque-correlation"],
                deadline_ms=0,
            )
            answered.append(one)
            await responder._sender.send(
                one.reply_to, "first", headers=answer_headers(one, "someone")
            )
            return "second"

        responder = reply(bootstrap, topic, twice)
        async with responder, request(bootstrap) as ask:
            assert await ask(topic, "x") == b"first"
            await send_all(bootstrap, ask.reply_to, "no headers")
            await until(lambda: ask.dropped == 2)

    run(story())


def test_messages_that_are_not_requests_and_expired_ones_are_skipped(
    bootstrap: str, topic: str
) -> None:
    async def story() -> None:
        async with reply(bootstrap, topic, echo) as responder, request(bootstrap) as ask:
            old = Request(reply_to=ask.reply_to, correlation="c", deadline_ms=1)
            await responder._sender.send(topic, "old", headers=request_headers(old))
            await send_all(bootstrap, topic, "not a request")
            assert await ask(topic, "new") == b"new"
            await until(lambda: (responder.passed_over, responder.answered) == (2, 1))

    run(story())


def test_more_requests_than_allowed_are_refused_at_once(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async with request(bootstrap, settings=AskerSettings(in_flight_max=2)) as ask:
            asked = [ask(topic, "x", deadline_seconds=0.3) for _ in range(3)]
            ended = await asyncio.gather(*asked, return_exceptions=True)
        kinds = sorted(type(one).__name__ for one in ended)
        assert kinds == ["NoAnswer", "NoAnswer", "TooManyInFlight"]

    run(story())


def test_with_a_limit_of_one_the_next_request_may_follow_at_once(
    bootstrap: str, topic: str
) -> None:
    async def story() -> list[bytes | None]:
        limits = AskerSettings(in_flight_max=1)
        async with reply(bootstrap, topic, echo), request(bootstrap, settings=limits) as ask:
            return [await ask(topic, str(number)) for number in range(5)]

    assert run(story()) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.requirement("PAT-4")
def test_all_workers_are_asked_and_their_answers_are_gathered(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async with (
            reply(bootstrap, topic, echo, name="a"),
            reply(bootstrap, topic, echo, name="b"),
            scatter(bootstrap, len) as ask,
        ):
            whole = await ask(topic, "x", workers=("a", "b"))
            assert (whole.value, whole.is_whole) == (2, True)
            part = await ask(topic, "x", workers=("a", "b", "c"), deadline_seconds=3)
            assert part.value == 2
            assert part.missing == {"c"}
            quick = await ask(topic, "x", workers=("a", "b", "c"), enough=2)
            assert quick.value == 2
            bad = await ask(topic, "fail", workers=("a", "b"))
            assert (bad.value, set(bad.failed)) == (0, {"a", "b"})

    run(story())


def test_the_reply_topic_is_deleted_when_its_client_leaves(bootstrap: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient

    async def story() -> str:
        async with reply(bootstrap, topic, echo), request(bootstrap) as ask:
            await ask(topic, "x")
            return ask.reply_to

    name = run(story())
    assert name not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics


def test_an_answer_to_a_deleted_topic_stops_no_responder(bootstrap: str, topic: str) -> None:
    async def story() -> None:
        async with reply(bootstrap, topic, echo) as responder, request(bootstrap) as ask:
            lost = Request(reply_to="no such topic!", correlation="c", deadline_ms=10**14)
            await responder._sender.send(topic, "lost", headers=request_headers(lost))
            assert await ask(topic, "fine") == b"fine"

    run(story())
