"""How handlers wait for later results of the broker."""

import asyncio

import pytest

from kafkaesque.broker.broker import Answer
from kafkaesque.errors import ChangeInProgress, NotLeader, PeerUnreachable
from kafkaesque.machines.catalog.catalog_commands import to_error, to_refusal
from kafkaesque.server.requests import callback_waits
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import InvalidRequest, NotController


def test_a_change_is_retried_while_the_catalog_has_no_leader() -> None:
    asked: list[Answer] = []

    def change(answer: Answer) -> None:
        asked.append(answer)
        if len(asked) == 1:
            raise NotLeader(None)  # no leader is known
        if len(asked) == 2:
            answer(NotLeader(2))  # the known leader has been deposed
        elif len(asked) == 3:
            answer(to_error(to_refusal(PeerUnreachable("it is gone"))))
        elif len(asked) == 4:
            raise ChangeInProgress("leadership is being handed to node 2")
        else:
            answer(None)

    asyncio.run(carried_out(change))
    assert len(asked) == 5


def test_a_refused_change_is_not_retried() -> None:
    asked: list[Answer] = []

    def change(answer: Answer) -> None:
        asked.append(answer)
        answer(InvalidRequest("no"))

    with pytest.raises(InvalidRequest):
        asyncio.run(carried_out(change))
    assert len(asked) == 1


def test_waiting_for_a_leader_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback_waits, "LEADER_WAIT_S_MAX", 0.0)

    def change(_: Answer) -> None:
        raise NotLeader(None)

    with pytest.raises(NotController):
        asyncio.run(carried_out(change))
