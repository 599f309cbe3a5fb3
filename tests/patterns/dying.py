"""A worker, a responder or a redrive in a separate process, which kills itself at a given step.

`python -m tests.patterns.dying KIND BOOTSTRAP TOPIC STEP JOURNAL`: kinds are `worker`, `strict` (a
worker without retries), `responder` and `redrive`; steps are those of STEPS and REDRIVE_STEPS, and
`none` and `mended`, which do not die. What handlers see is appended to the journal, and for strict
workers only what they have done.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from kafkaesque.patterns import (
    Delivery,
    RetryPlan,
    WorkerSettings,
    dead_letter_redrive,
    reply,
    worker,
)
from kafkaesque.patterns.committer import Committer
from kafkaesque.patterns.dead_letter_redrive import Redriver, RedriveSettings
from kafkaesque.patterns.engine import EngineSettings
from kafkaesque.patterns.sender import Sender

STEPS = ("handling", "handled", "before-copy", "after-copy", "before-commit", "after-commit")
REDRIVE_STEPS = ("sending", "before-mark", "after-mark")
MARK_EVERY = 10
LIMITS = EngineSettings(concurrency=4, in_flight_max=20, commit_seconds=0.1)
SETTINGS = WorkerSettings(retries=RetryPlan(delays_ms=(10,)), limits=LIMITS)
STRICT = WorkerSettings(retries=RetryPlan(delays_ms=()), limits=LIMITS)


def die() -> None:
    """End like a crash."""
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


class DyingCommitter(Committer):
    """Dies before or after its first non-empty commit."""

    step = "none"

    async def _try(self, *words: Any) -> bool:
        if self.step == "before-commit":
            die()
        is_done = await super()._try(*words)
        if self.step == "after-commit":
            die()
        return is_done


class DyingRedriver(Redriver):
    """Dies while it sends, or when it records what it has sent."""

    step = "none"

    def _send(self, *words: Any) -> None:
        if self.step == "sending" and self._tally["moved"] == 2 * MARK_EVERY + 5:
            die()
        super()._send(*words)

    def _mark(self, *words: Any) -> None:
        if self.step == "before-mark":
            die()
        super()._mark(*words)
        if self.step == "after-mark":
            self._producer.flush(10)
            die()


async def work(kind: str, bootstrap: str, topic: str, step: str, journal: Path) -> None:
    """Work until killed."""
    # Static membership: the next member takes over at once, not after a session timeout.
    client = {"bootstrap.servers": bootstrap, "group.instance.id": "one"}
    handled = 0

    def note(delivery: Delivery) -> None:
        with journal.open("a") as lines:
            lines.write(f"{delivery.text} {delivery.attempt}\n")

    async def handle(delivery: Delivery) -> None:
        nonlocal handled
        if step == "handling" and handled == 3:
            die()
        if kind != "strict":
            note(delivery)
        handled += 1
        if step == "handled" and handled == 3:
            die()
        if delivery.text.startswith("bad") and step != "mended":
            raise ValueError("bad")
        if kind == "strict":
            note(delivery)

    async def answer(delivery: Delivery) -> str:
        await handle(delivery)
        return f"answer to {delivery.text}"

    DyingSender.step = DyingCommitter.step = step
    if kind == "responder":
        one = reply(client, topic, answer)
    else:
        settings = STRICT if kind == "strict" else SETTINGS
        one = worker(client, topic, handle, settings=settings)  # type: ignore[assignment]
    one._sender.__class__ = DyingSender
    async with one:
        one._engine.committer.__class__ = DyingCommitter
        await one.run()


def redrive(bootstrap: str, topic: str, step: str) -> None:
    """Send dead letters back until killed, or until all are sent."""
    dead_letter_redrive.MARK_EVERY, dead_letter_redrive._POLL_EVERY = MARK_EVERY, 1
    DyingRedriver.step = step
    DyingRedriver(bootstrap, topic, RedriveSettings()).run()


if __name__ == "__main__":
    _kind, _bootstrap, _topic, _step, _journal = sys.argv[1:]
    if _kind == "redrive":
        redrive(_bootstrap, _topic, _step)
    else:
        asyncio.run(work(_kind, _bootstrap, _topic, _step, Path(_journal)))
