"""Payments: request and reply. The shop asks, the gateway answers, refuses, or is too slow."""

import asyncio

from kafkaesque.errors import NoAnswer, RequestFailed
from kafkaesque.patterns import Delivery, reply, request
from kafkaesque.testing.story import tell


async def gateway(payment: Delivery) -> str:
    """Answer whether a payment went through; an exception is an answer, too."""
    card, _, amount = payment.text.partition(" ")
    if card == "expired":
        raise ValueError("the card has expired")
    if card == "slow":
        await asyncio.sleep(2)
    return f"paid {amount}"


async def story(bootstrap: str) -> bool:
    """Let a shop take payments."""
    outcomes: list[str] = []
    async with reply(bootstrap, "payments", gateway), request(bootstrap) as ask:
        for payment in ("visa 20", "expired 30", "slow 40"):
            print(f"The shop asks for {payment}")
            try:
                answer = await ask("payments", payment, deadline_seconds=1)
                outcomes.append((answer or b"").decode())
            except RequestFailed as refused:
                outcomes.append(f"refused: {refused.reason}")
            except NoAnswer:
                outcomes.append("no answer")
            print(f"  {outcomes[-1]}")
        many = await asyncio.gather(*(ask("payments", f"visa {n}") for n in range(200)))
        print(f"{len(many)} payments at once, each with its own answer.")
    return outcomes == ["paid 20", "refused: the card has expired", "no answer"] and many == [
        f"paid {n}".encode() for n in range(200)
    ]


if __name__ == "__main__":
    tell(story)
