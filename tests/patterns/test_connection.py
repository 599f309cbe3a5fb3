"""How the patterns handle unclear answers to an admin client."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafkaesque.errors import PatternError
from kafkaesque.patterns import connection
from kafkaesque.patterns.connection import make_topics


class AnAdmin:
    """Answers each request to create a topic with the next of some errors; None is success."""

    def __init__(self, *errors: int | None) -> None:
        self.errors = list(errors)

    def create_topics(self, wanted: Any, **_: Any) -> dict[str, "Future[None]"]:
        return {topic.topic: self._answer(self.errors.pop(0)) for topic in wanted}

    def list_topics(self, **_: Any) -> Any:
        return SimpleNamespace(topics={"orders": SimpleNamespace(partitions=[0, 1])})

    @staticmethod
    def _answer(error: int | None) -> "Future[None]":
        future: Future[None] = Future()
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(KafkaException(KafkaError(error)))
        return future


def made(monkeypatch: pytest.MonkeyPatch, admin: AnAdmin) -> dict[str, int]:
    monkeypatch.setattr(connection, "AdminClient", lambda _: admin)
    return make_topics("localhost:9092", {"orders": {}}, seconds_max=5)


@pytest.mark.parametrize("then", [None, KafkaError.TOPIC_ALREADY_EXISTS])
@pytest.mark.parametrize("first", [KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_CONTROLLER])
def test_a_topic_that_may_have_been_created_is_requested_again(
    monkeypatch: pytest.MonkeyPatch, first: int, then: int | None
) -> None:
    admin = AnAdmin(first, first, then)
    assert made(monkeypatch, admin) == {"orders": 2}
    assert admin.errors == []


def test_a_refused_topic_is_requested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = AnAdmin(KafkaError.INVALID_CONFIG, None)
    with pytest.raises(PatternError, match="topic orders cannot be created"):
        made(monkeypatch, admin)
    assert admin.errors == [None]
