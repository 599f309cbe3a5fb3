"""A topic is read to its end, each message once, or it is an error."""

from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Message as ClientMessage
from confluent_kafka.admin import AdminClient

from kafkaesque.errors import PatternError
from kafkaesque.patterns import parts
from kafkaesque.patterns.connection import Ends, partitions_of
from tests.log.logs import HandClock
from tests.patterns.waiting import run, send_all

pytestmark = [pytest.mark.compat, pytest.mark.requirement("PAT-5")]

WANTED = [str(number) for number in range(6)]


def fill(bootstrap: str, topic: str) -> dict[int, int]:
    """Send messages to one partition; returns the end offsets."""
    run(send_all(bootstrap, topic, *WANTED, key="k"))
    return Ends(bootstrap).ask(topic, range(partitions_of(bootstrap, topic)))


def test_what_is_left_is_read_where_the_beginning_is_gone(bootstrap: str, topic: str) -> None:
    ends = fill(bootstrap, topic)
    gone = [TopicPartition(topic, partition, 2) for partition, end in ends.items() if end]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_records(gone).values():
        deleted.result(10)
    read = parts.read_parts(bootstrap, topic, dict.fromkeys(ends, 0), ends)
    assert [(one.value() or b"").decode() for one in read] == WANTED[2:]


def test_another_consumer_continues_where_one_keeps_failing_and_nothing_comes_twice(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, made = HandClock(), []

    class Failing(Consumer):
        """A client that returns nothing more after two messages, if it is the first."""

        def __init__(self, *words: Any) -> None:
            super().__init__(*words)
            self.turns = 0
            made.append(self)

        def assign(self, partitions: list[TopicPartition]) -> None:
            """Start at the beginning, like a client whose offset is out of range."""
            super().assign([TopicPartition(one.topic, one.partition, 0) for one in partitions])

        def consume(self, count: int = 1, seconds: float = -1) -> list[ClientMessage]:
            """Return nothing more."""
            self.turns += 1
            if self is made[0] and self.turns > 1:
                clock.ms += parts.CONSUMER_MS_MAX + 1
                return []
            return super().consume(2, 10)

    ends = fill(bootstrap, topic)
    monkeypatch.setattr(parts, "Consumer", Failing)
    starts = dict.fromkeys(ends, 0)
    read = list(parts.read_parts(bootstrap, topic, starts, ends, clock))
    assert [(one.value() or b"").decode() for one in read] == WANTED
    assert len(made) == 2


def test_a_premature_end_of_partition_is_ignored(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()

    class Behind(Consumer):
        """A client that reports the end of a partition once, and then nothing for long."""

        def consume(self, count: int = 1, seconds: float = -1) -> list[ClientMessage]:
            """Read until the end is reported."""
            batch = super().consume(count, seconds)
            if any(one.error() for one in batch):
                clock.ms += parts.SILENCE_MS_MAX + 1
            return batch

    ends = {partition: end + 1 for partition, end in fill(bootstrap, topic).items() if end}
    monkeypatch.setattr(parts, "Consumer", Behind)
    read = parts.read_parts(bootstrap, topic, dict.fromkeys(ends, 0), ends, clock)
    with pytest.raises(PatternError, match="cannot be read to its end"):
        list(read)


def test_the_consumer_of_the_messages_may_take_its_time(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()

    class Halting(Consumer):
        """A client that returns one message at most, and nothing every other time."""

        turns = 0

        def consume(self, count: int = 1, seconds: float = -1) -> list[ClientMessage]:
            """Read now and then."""
            self.turns += 1
            return super().consume(1, 10) if self.turns % 2 else []

    ends = fill(bootstrap, topic)
    monkeypatch.setattr(parts, "Consumer", Halting)
    read = []
    for raw in parts.read_parts(bootstrap, topic, dict.fromkeys(ends, 0), ends, clock):
        read.append((raw.value() or b"").decode())
        clock.ms += 2 * parts.SILENCE_MS_MAX
    assert read == WANTED
