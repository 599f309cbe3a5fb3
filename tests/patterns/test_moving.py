"""A failed message is copied once, even if the outcome of the copy is unknown."""

from typing import Any

import pytest

from kafkaesque.errors import PatternError, Undelivered
from kafkaesque.patterns import Delivery, RetryPlan, WorkerSettings, worker, workers
from kafkaesque.patterns.recovery import find_copy
from kafkaesque.patterns.sender import Sender
from tests.patterns.waiting import QUICK, letters, run, send_all, until

pytestmark = pytest.mark.compat


class Deaf(Sender):
    """Sends, and reports the outcome of the first message as unknown."""

    is_told = False

    async def send(self, *words: Any, **options: Any) -> Any:
        """Send, and lose the answer."""
        sent = await super().send(*words, **options)
        if not self.is_told:
            self.is_told = True
            raise Undelivered("no word of it")
        return sent


@pytest.mark.requirement("PAT-5")
def test_a_copy_with_an_unknown_outcome_is_repeated_only_if_it_is_missing(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def find(*words: Any) -> bool:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise PatternError("no broker answers")
        return find_copy(*words)

    async def refuse(_: Delivery) -> None:
        raise ValueError("no")

    async def story() -> None:
        settings = WorkerSettings(retries=RetryPlan(delays_ms=()), limits=QUICK.limits)
        one = worker(bootstrap, topic, refuse, settings=settings)
        one._sender.__class__ = Deaf
        async with one:
            await send_all(bootstrap, topic, "bad")
            await until(lambda: one.dead == 1)

    monkeypatch.setattr(workers, "find_copy", find)
    run(story())
    assert asked == 2
    assert [one.message.text for one in letters(bootstrap, topic)] == ["bad"]
