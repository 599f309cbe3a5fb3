"""Dead letters are sent back once each, and not without end."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kafkaesque.errors import InvalidPattern, PatternError
from kafkaesque.patterns import (
    Delivery,
    RedriveSettings,
    RetryPlan,
    WorkerSettings,
    redrive,
    worker,
)
from kafkaesque.patterns.letters import read_all
from kafkaesque.patterns.marks import REDRIVEN_SUFFIX
from tests.patterns.waiting import QUICK, run, send_all, until

pytestmark = pytest.mark.compat

NO_RETRIES = WorkerSettings(retries=RetryPlan(delays_ms=()), limits=QUICK.limits)


def bury(bootstrap: str, topic: str, *values: str) -> str:
    """Create dead letters; returns their topic."""

    async def refuse(delivery: Delivery) -> None:
        raise (KeyError if delivery.text.startswith("key") else ValueError)("no")

    async def story() -> str:
        async with worker(bootstrap, topic, refuse, settings=NO_RETRIES) as one:
            await send_all(bootstrap, topic, *values)
            await until(lambda: one.dead == len(values))
            return one.names.dead_letter

    return run(story())


def texts(bootstrap: str, topic: str) -> list[str]:
    """Return the contents of a topic."""
    return sorted(message.text for message in read_all(bootstrap, topic))


@pytest.mark.requirement("PAT-5")
def test_letters_are_sent_back_to_their_origin_once(bootstrap: str, topic: str) -> None:
    dead = bury(bootstrap, topic, "a", "b")
    assert run(redrive(bootstrap, dead, RedriveSettings(dry_run=True))).moved == 2
    assert texts(bootstrap, topic) == ["a", "b"]
    assert run(redrive(bootstrap, dead)).moved == 2
    assert run(redrive(bootstrap, dead)).seen == 0
    assert texts(bootstrap, topic) == ["a", "a", "b", "b"]


class CannotReadMarks(Consumer):
    """A client that gets no answer about the topics of marks."""

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Fail like a broker's disk."""
        if partitions[0].topic.endswith(REDRIVEN_SUFFIX):
            raise KafkaException(KafkaError(KafkaError.KAFKA_STORAGE_ERROR))
        super().assign(partitions)


@pytest.mark.requirement("PAT-5")
def test_unreadable_marks_are_an_error_and_nothing_is_sent_again(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = bury(bootstrap, topic, "a")
    assert run(redrive(bootstrap, dead)).moved == 1
    monkeypatch.setattr("kafkaesque.patterns.parts.Consumer", CannotReadMarks)
    for settings in (RedriveSettings(), RedriveSettings(dry_run=True)):
        with pytest.raises(PatternError, match="cannot be read"):
            run(redrive(bootstrap, dead, settings))
    assert texts(bootstrap, topic) == ["a", "a"]


def test_a_queue_of_one_is_enough_for_the_marks_of_many_partitions(
    bootstrap: str, topic: str
) -> None:
    dead = bury(bootstrap, topic, *map(str, range(20)))
    assert len({one.partition for one in read_all(bootstrap, dead)}) > 1
    small = {"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1}
    assert run(redrive(small, dead)).moved == 20
    assert run(redrive(bootstrap, dead)).seen == 0


def test_a_filter_selects_letters_and_the_rest_can_be_sent_later(
    bootstrap: str, topic: str
) -> None:
    dead = bury(bootstrap, topic, "key-1", "value-1", "key-2")
    keys = RedriveSettings(
        to=f"{topic}-other", where=lambda _, one: bool(one and one.failure.error == "KeyError")
    )
    done = run(redrive(bootstrap, dead, keys))
    assert (done.moved, done.filtered) == (2, 1)
    assert texts(bootstrap, f"{topic}-other") == ["key-1", "key-2"]
    assert run(redrive(bootstrap, dead)).moved == 1


def test_letters_that_return_too_often_are_left(bootstrap: str, topic: str) -> None:
    settings = RedriveSettings(redrives_max=2)
    dead = bury(bootstrap, topic, "loop")
    for _ in range(2):
        assert run(redrive(bootstrap, dead, settings)).moved == 1
        bury_again(bootstrap, topic)
    assert run(redrive(bootstrap, dead, settings)).looping == 1


def bury_again(bootstrap: str, topic: str) -> None:
    """Let a worker fail on what was sent back."""

    async def refuse(_: Delivery) -> None:
        raise ValueError("again")

    async def story() -> None:
        async with worker(bootstrap, topic, refuse, settings=NO_RETRIES) as one:
            await until(lambda: one.dead == 1)

    run(story())


def test_the_rate_is_kept_and_progress_is_reported(bootstrap: str, topic: str) -> None:
    dead = bury(bootstrap, topic, *map(str, range(5)))
    told: list[int] = []
    began = time.monotonic()
    settings = RedriveSettings(per_second_max=20, count_max=4)
    run(redrive(bootstrap, dead, settings, progress=lambda state: told.append(state.moved)))
    assert time.monotonic() - began >= 3 / 20
    assert told[-1] == 4


def test_foreign_letters_stay_unless_a_target_is_given(bootstrap: str, topic: str) -> None:
    run(send_all(bootstrap, f"{topic}.dlq", "whose?"))
    assert run(redrive(bootstrap, f"{topic}.dlq")).unknown_origin == 1
    assert run(redrive(bootstrap, f"{topic}.dlq", RedriveSettings(to=topic))).moved == 1


def test_invalid_arguments_are_refused(bootstrap: str, topic: str) -> None:
    with pytest.raises(PatternError, match="no topic"):
        run(redrive(bootstrap, f"{topic}.dlq"))
    with pytest.raises(InvalidPattern):
        run(redrive(bootstrap, "x.dlq", RedriveSettings(to="x.dlq")))
    with pytest.raises(InvalidPattern):
        RedriveSettings(per_second_max=0)
