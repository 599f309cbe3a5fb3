"""A worker or a responder in a process of its own, which kills itself at a given step, once.

`python -m tests.patterns.dying worker|responder BOOTSTRAP TOPIC STEP JOURNAL`: the step is `none`,
`handling`, `handled`, `before-copy` or `after-copy`. What handlers see is appended to the journal.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from kafkaesque.patterns import Delivery, RetryPlan, WorkerSettings, reply, worker
from kafkaesque.patterns.engine import EngineSettings
from kafkaesque.patterns.sender import Sender

SETTINGS = WorkerSettings(
    retries=RetryPlan(delays_ms=(10,)),
    limits=EngineSettings(concurrency=4, in_flight_max=20, commit_seconds=0.1),
)


def die() -> None:
    """End as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)


class DyingSender(Sender):
    """Dies before or after the first message that it sends."""

    step = "none"

    async def send(self, *words: Any, **options: Any) -> Any:
        """Send, or die."""
        if self.step == "before-copy":
            die()
        sent = await super().send(*words, **options)
        if self.step == "after-copy":
            die()
        return sent


async def main(kind: str, bootstrap: str, topic: str, step: str, journal: Path) -> None:
    """Work until killed."""
    # Static membership: whoever comes next takes over at once, not after a session time-out.
    client = {"bootstrap.servers": bootstrap, "group.instance.id": "one"}
    handled = 0

    async def handle(delivery: Delivery) -> None:
        nonlocal handled
        if step == "handling" and handled == 3:
            die()
        with journal.open("a") as lines:
            lines.write(f"{delivery.text} {delivery.attempt}\n")
        handled += 1
        if step == "handled" and handled == 3:
            die()
        if delivery.text.startswith("bad"):
            raise ValueError("bad")

    async def answer(delivery: Delivery) -> str:
        await handle(delivery)
        return f"answer to {delivery.text}"

    DyingSender.step = step
    if kind == "worker":
        one = worker(client, topic, handle, settings=SETTINGS)
    else:
        one = reply(client, topic, answer)  # type: ignore[assignment]  # both run
    one._sender.__class__ = DyingSender
    async with one:
        await one.run()


if __name__ == "__main__":
    _kind, _bootstrap, _topic, _step, _journal = sys.argv[1:]
    asyncio.run(main(_kind, _bootstrap, _topic, _step, Path(_journal)))
