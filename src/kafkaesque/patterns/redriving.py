"""Redrive: dead letters go back to where they came from, or elsewhere."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer

from kafkaesque.errors import InvalidPattern, Undelivered
from kafkaesque.patterns.connection import Client, make_topics, partitions_of, settings
from kafkaesque.patterns.dead_letter import DeadLetter, redrive_headers
from kafkaesque.patterns.letters import Letter, open_letters, read_marks
from kafkaesque.patterns.marks import RANGES_PER_MARK_MAX, REDRIVEN_SUFFIX, Marks, encode
from kafkaesque.patterns.message import Message

Where: TypeAlias = Callable[[Message, DeadLetter | None], bool]

MARK_EVERY = 1_000
"""Letters that are sent before it is noted: as many are sent again, at most, after a crash."""
_FLUSH_SECONDS_MAX = 60.0
_QUEUE_SECONDS = 0.1
_PROGRESS_EVERY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveSettings:
    """What is sent back, where to and how fast."""

    to: str | None = None
    """The topic to send to; else each letter goes to the one that it came from."""
    where: Where | None = None
    """Which letters: called with the message and what its headers say, None if not ours."""
    dry_run: bool = False
    """Only count."""
    per_second_max: float | None = None
    redrives_max: int = 3
    """A letter that came back so often is left where it is: sending it again would be a loop."""
    count_max: int | None = None

    def __post_init__(self) -> None:
        if self.per_second_max is not None and self.per_second_max <= 0:
            raise InvalidPattern("the rate is above 0")
        if self.redrives_max < 1 or (self.count_max is not None and self.count_max < 1):
            raise InvalidPattern("redrives_max and count_max are at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """How far it is, and in the end what was done."""

    seen: int = 0
    moved: int = 0
    """Sent on; in a dry run what would have been."""
    filtered: int = 0
    """Left because `where` did not want them."""
    looping: int = 0
    """Left because they came back too often."""
    unknown_origin: int = 0
    """Left because their headers do not say where they came from, and `to` was not given."""


Progress: TypeAlias = Callable[[Redriven], None]


class Redriver:
    """One run over a dead-letter topic, up to its end at the start; blocking."""

    def __init__(self, client: Client, topic: str, wanted: RedriveSettings) -> None:
        if wanted.to == topic:
            raise InvalidPattern("dead letters cannot be sent to the topic that they are in")
        self._client = client
        self._topic = topic
        self._wanted = wanted
        self._unmarked: dict[int, Marks] = {}
        self._sent_unmarked = 0
        self._failures: list[str] = []

    def run(self, progress: Progress | None = None) -> Redriven:
        """Send back what is wanted and was not sent before; raises Undelivered."""
        wanted = self._wanted
        partitions_of(self._client, self._topic)
        state = Redriven()
        if not wanted.dry_run:
            marks_topic = self._topic + REDRIVEN_SUFFIX
            make_topics(self._client, {marks_topic: {"retention.ms": "-1"}}, partitions=1)
            self._producer = Producer(
                settings(
                    self._client,
                    {"linger.ms": 5, "partitioner": "murmur2_random", "enable.idempotence": True},
                    {"acks": "all"},
                )
            )
        pace = _pace(wanted.per_second_max)
        for letter in open_letters(
            self._client, self._topic, read_marks(self._client, self._topic)
        ):
            target, state = self._decide(letter, state)
            if target is not None:
                if not wanted.dry_run:
                    next(pace)
                    self._send(letter.message, target)
                state = replace(state, moved=state.moved + 1)
            if progress is not None and state.seen % _PROGRESS_EVERY == 0:
                progress(state)
            if wanted.count_max is not None and state.moved >= wanted.count_max:
                break
        if not wanted.dry_run:
            self._mark()
        if progress is not None:
            progress(state)
        return state

    def _decide(self, letter: Letter, state: Redriven) -> tuple[str | None, Redriven]:
        """Return where a letter is to go, None if it stays, and the count."""
        wanted, dead = self._wanted, letter.dead
        state = replace(state, seen=state.seen + 1)
        if wanted.where is not None and not wanted.where(letter.message, dead):
            return None, replace(state, filtered=state.filtered + 1)
        if dead is not None and dead.redrives >= wanted.redrives_max:
            return None, replace(state, looping=state.looping + 1)
        target = wanted.to or (dead.origin.topic if dead is not None else None)
        if target is None:
            return None, replace(state, unknown_origin=state.unknown_origin + 1)
        return target, state

    def _send(self, message: Message, target: str) -> None:
        headers: list[tuple[str, str | bytes | None]] = list(redrive_headers(message))
        while True:  # ends: what is in the queue is sent or times out, and makes room
            try:
                self._producer.produce(
                    target,
                    message.value,
                    message.key,
                    headers=headers,
                    on_delivery=self._delivered,
                )
                break
            except BufferError:
                self._producer.poll(_QUEUE_SECONDS)
            except KafkaException as error:
                raise Undelivered(f"a message to {target}: {error.args[0].str()}") from error
        self._producer.poll(0)
        self._unmarked.setdefault(message.partition, Marks()).add(
            message.offset, message.offset + 1
        )
        self._sent_unmarked += 1
        if self._sent_unmarked >= MARK_EVERY:
            self._mark()

    def _mark(self) -> None:
        """Note what was sent, once all of it is acknowledged."""
        self._flush()
        for partition, marks in self._unmarked.items():
            ranges = marks.ranges()
            assert len(ranges) <= RANGES_PER_MARK_MAX
            self._producer.produce(
                self._topic + REDRIVEN_SUFFIX,
                encode(ranges),
                b"%d" % partition,
                on_delivery=self._delivered,
            )
        self._flush()
        self._unmarked.clear()
        self._sent_unmarked = 0

    def _flush(self) -> None:
        left = self._producer.flush(_FLUSH_SECONDS_MAX)
        if left or self._failures:
            why = self._failures[0] if self._failures else f"no word of {left} messages"
            raise Undelivered(f"what was sent last may or may not have arrived: {why}")

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is not None and not self._failures:
            self._failures.append(error.str())


def _pace(per_second_max: float | None) -> Iterator[None]:
    """Yield as often as is allowed."""
    due = time.monotonic()
    while True:
        yield
        if per_second_max is not None:
            due = max(due, time.monotonic()) + 1 / per_second_max
            time.sleep(max(0.0, due - time.monotonic()))


async def redrive(
    client: Client,
    topic: str,
    settings: RedriveSettings | None = None,
    *,
    progress: Progress | None = None,
) -> Redriven:
    """Send the letters of a dead-letter topic back; returns what was done, raises Undelivered.

    Letters that were sent back before are passed over. `progress` is called in another thread.
    """
    redriver = Redriver(client, topic, settings or RedriveSettings())
    return await asyncio.to_thread(redriver.run, progress)
