"""Requests that other brokers hand on."""

import pytest

from kafkaesque.net.codec import Failure, Reply
from kafkaesque.net.ports import Question
from kafkaesque.server.cluster_channel import Forwarded
from kafkaesque.server.local_channel import LocalChannel
from kafkaesque.server.peering import Ask
from tests.server.memory_broker import MemoryBroker


@pytest.mark.parametrize("data", [b"", b"\0\3\0", b"\x7f\xff\0\0", b"\0\3\0\x0c", b"\0\3\x7f\xff"])
def test_what_cannot_be_read_is_refused_and_breaks_nothing(data: bytes) -> None:
    answers: list[Failure | Reply] = []
    question = Question(2, Ask.REQUEST, memoryview(data), 7, answers.append)
    Forwarded(LocalChannel(MemoryBroker().broker, "broker.example", 1234)).answer(question)
    [answer] = answers
    assert isinstance(answer, Failure)
    assert answer.reason.startswith("the request cannot be read")
