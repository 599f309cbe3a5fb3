"""The sender's count of messages in flight: it counts only what was sent."""

import asyncio

import pytest

from kafkaesque.patterns.sender import QUEUE_KIB_MAX, Sender
from tests.patterns.waiting import run

NOBODY = "127.0.0.1:1"
LARGE = bytes(900_000)
FITTING = QUEUE_KIB_MAX * 1024 // len(LARGE)


@pytest.mark.compat
def test_an_invalid_message_takes_no_place_in_the_queue(bootstrap: str, topic: str) -> None:
    async def story() -> int:
        async with Sender(bootstrap, in_flight_max=1) as sender:
            for _ in range(2):
                with pytest.raises(TypeError):
                    await sender.send(topic, "x", headers=(("name", 1),))  # type: ignore[arg-type]
            with pytest.raises(TypeError):
                sender.post(topic, 1, key=None, headers=(), report=print)  # type: ignore[arg-type]
            return (await sender.send(topic, "x")).offset

    assert run(story()) == 0


def test_a_send_cancelled_while_the_queue_is_full_takes_no_place() -> None:
    async def story() -> None:
        sender = Sender(NOBODY, in_flight_max=FITTING + 2, timeout_ms=1_000, is_idempotent=False)
        async with sender:
            sending = [asyncio.ensure_future(sender.send("t", LARGE)) for _ in range(FITTING + 2)]
            await asyncio.sleep(0)
            for one in sending:
                one.cancel()
            await asyncio.wait(sending)
            assert sender._in_flight < FITTING + 2
            sender.post("t", b"", key=None, headers=(), report=lambda *_: None)
        assert sender._in_flight == 0

    run(story())
