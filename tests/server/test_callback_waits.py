"""How handlers wait for what the broker does later."""

import asyncio

import pytest

from kafkaesque.broker.broker import Answer
from kafkaesque.errors import ChangeInProgress, NotLeader, PeerUnreachable
from kafkaesque.machines.catalog.catalog_commands import to_error, to_refusal
from kafkaesque.server.requests import callback_waits
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import InvalidRequest, NotController


def test_a_change_is_asked_for_again_while_nobody_leads_the_catalog() -> None:
    asked: list[Answer] = []

    def change(answer: Answer) -> None:
        asked.append(answer)
        if len(asked) == 1:
            raise NotLeader(None)  # nobody is known
        if len(asked) == 2:
            answer(NotLeader(2))  # who was known leads no more
        elif len(asked) == 3:
            answer(to_error(to_refusal(PeerUnreachable("it is gone"))))
        elif len(asked) == 4:
            raise ChangeInProgress("leadership is being handed to node 2")
        else:
            answer(None)

    asyncio.run(carried_out(change))
    assert len(asked) == 5


def test_a_change_that_is_refused_is_not_asked_for_again() -> None:
    asked: list[Answer] = []

    def change(answer: Answer) -> None:
        asked.append(answer)
        answer(InvalidRequest("no"))

    with pytest.raises(InvalidRequest):
        asyncio.run(carried_out(change))
    assert len(asked) == 1


def test_nobody_waits_for_a_leader_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback_waits, "LEADER_WAIT_S_MAX", 0.0)

    def change(_: Answer) -> None:
        raise NotLeader(None)

    with pytest.raises(NotController):
        asyncio.run(carried_out(change))
