"""Redrive: sends dead letters back to where they came from, or elsewhere."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as ClientMessage

from kafkaesque.errors import InvalidPattern, Undelivered
from kafkaesque.patterns.connection import Client, make_topics, partitions_of, settings
from kafkaesque.patterns.dead_letter import (
    ORIGIN_TOPIC,
    REDRIVES,
    DeadLetter,
    decode,
    redrive_headers,
)
from kafkaesque.patterns.letters import open_messages, read_marks
from kafkaesque.patterns.marks import RANGES_PER_MARK_MAX, REDRIVEN_SUFFIX, Marks, encode
from kafkaesque.patterns.message import (
    Headers,
    Message,
    from_client,
    int_header,
    text_header,
    to_headers,
)
from kafkaesque.types import Offset

Where: TypeAlias = Callable[[Message, DeadLetter | None], bool]

MARK_EVERY = 1_000
"""Letters per mark, written once all of them are acknowledged."""
_UNMARKED_MAX = 2
"""Full groups that wait for it: after a crash they and the unfinished one are sent again."""
_FLUSH_SECONDS_MAX = 60.0
_QUEUE_SECONDS = 0.1
_PROGRESS_EVERY = 100
_POLL_EVERY = 100
"""Letters between two polls for acknowledgements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveSettings:
    """What to send back, where to and how fast."""

    to: str | None = None
    """The topic to send to; None sends each letter to its origin."""
    where: Where | None = None
    """Filters letters: called with the message and its decoded headers, None if foreign."""
    dry_run: bool = False
    """Only count."""
    per_second_max: float | None = None
    redrives_max: int = 3
    """A letter that came back this often stays: sending it again would be a loop."""
    count_max: int | None = None

    def __post_init__(self) -> None:
        if self.per_second_max is not None and self.per_second_max <= 0:
            raise InvalidPattern("the rate must be above 0")
        if self.redrives_max < 1 or (self.count_max is not None and self.count_max < 1):
            raise InvalidPattern("redrives_max and count_max must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """The progress, and in the end the result."""

    seen: int = 0
    moved: int = 0
    """Sent; in a dry run, would have been sent."""
    filtered: int = 0
    """Left because `where` rejected them."""
    looping: int = 0
    """Left because they came back too often."""
    unknown_origin: int = 0
    """Left because their headers name no origin and `to` was not given."""


Progress: TypeAlias = Callable[[Redriven], None]


class Redriver:
    """One run over a dead-letter topic, up to its end at the start; blocks."""

    def __init__(self, client: Client, topic: str, wanted: RedriveSettings) -> None:
        if wanted.to == topic:
            raise InvalidPattern("dead letters cannot be sent to their own topic")
        self._client = client
        self._topic = topic
        self._wanted = wanted
        self._group = _Group()
        self._unmarked: list[_Group] = []
        self._noted = _Group()
        names = ("seen", "moved", "filtered", "looping", "unknown_origin")
        self._tally = dict.fromkeys(names, 0)

    def run(self, progress: Progress | None = None) -> Redriven:
        """Send back the selected letters that were not sent before; raises Undelivered."""
        wanted = self._wanted
        count = partitions_of(self._client, self._topic)
        marks_count = None if wanted.dry_run else self._open()
        pace = _pace(wanted.per_second_max)
        marks = read_marks(self._client, self._topic, marks_count)
        # The client's own messages are used: making a Message of each takes a fifth of the time of
        # sending it back, see `bench/patterns.py`.
        for raw in open_messages(self._client, self._topic, marks, count):
            pairs = to_headers(raw.headers())
            # Foreign headers may repeat a name: the last value counts.
            headers = dict(pairs)
            redrives = int_header(headers, REDRIVES) or 0
            target = self._decide(raw, headers, redrives)
            if target is not None:
                if not wanted.dry_run:
                    next(pace)
                    self._send(raw, target, redrive_headers(pairs, redrives + 1))
                self._tally["moved"] += 1
            if progress is not None and self._tally["seen"] % _PROGRESS_EVERY == 0:
                progress(self._state())
            if wanted.count_max is not None and self._tally["moved"] >= wanted.count_max:
                break
        if not wanted.dry_run:
            self._flush()
            self._mark(self._group)
            self._flush()
        if progress is not None:
            progress(self._state())
        return self._state()

    def _state(self) -> Redriven:
        return Redriven(**self._tally)

    def _open(self) -> int:
        """Prepare to send; returns how many partitions the topic of the marks has."""
        marks_topic = self._topic + REDRIVEN_SUFFIX
        made = make_topics(self._client, {marks_topic: {"retention.ms": "-1"}}, partitions=1)
        # One request at a time keeps the order; an idempotent producer would be slow to start.
        defaults = {
            "linger.ms": 5,
            "partitioner": "murmur2_random",
            "max.in.flight.requests.per.connection": 1,
        }
        self._producer = Producer(settings(self._client, defaults, {"acks": "all"}))
        return made[marks_topic]

    def _decide(
        self, raw: ClientMessage, headers: Mapping[str, bytes | None], redrives: int
    ) -> str | None:
        """Return the letter's target, or None if it stays; and count it."""
        wanted, tally = self._wanted, self._tally
        tally["seen"] += 1
        if wanted.where is not None:
            message = from_client(raw)
            if not wanted.where(message, decode(message)):
                tally["filtered"] += 1
                return None
        if redrives >= wanted.redrives_max:
            tally["looping"] += 1
            return None
        target = wanted.to or text_header(headers, ORIGIN_TOPIC)
        tally["unknown_origin"] += not target
        return target or None

    def _send(self, raw: ClientMessage, target: str, pairs: Headers) -> None:
        headers: list[tuple[str, str | bytes | None]] = list(pairs)
        group = self._group
        self._produce(target, raw.value(), raw.key(), headers, group)
        group.add(raw.partition() or 0, raw.offset() or 0)
        if group.sent % _POLL_EVERY == 0:
            self._producer.poll(0)
        if group.sent >= MARK_EVERY:
            self._group = _Group()
            self._unmarked.append(group)
        self._mark_settled()
        while len(self._unmarked) > _UNMARKED_MAX:  # ends: each letter is sent or times out
            self._producer.poll(_QUEUE_SECONDS)
            self._mark_settled()

    def _mark_settled(self) -> None:
        while self._unmarked and self._unmarked[0].is_settled:
            self._mark(self._unmarked.pop(0))

    def _mark(self, group: "_Group") -> None:
        """Write the mark of a group that was acknowledged."""
        if group.failure is not None:
            raise Undelivered(f"the last letters may or may not have arrived: {group.failure}")
        for partition, marks in group.marks.items():
            ranges = marks.ranges()
            assert len(ranges) <= RANGES_PER_MARK_MAX
            key = b"%d" % partition
            self._produce(self._topic + REDRIVEN_SUFFIX, encode(ranges), key, [], self._noted)
        group.marks.clear()

    def _produce(
        self,
        target: str,
        value: bytes | None,
        key: bytes | None,
        headers: list[tuple[str, str | bytes | None]],
        group: "_Group",
    ) -> None:
        """Queue a message in librdkafka, which reports to the group; waits for room."""
        while True:  # ends: queued messages are sent or time out, which makes room
            try:
                self._producer.produce(
                    target, value, key, headers=headers, on_delivery=group.report
                )
            except BufferError:
                self._producer.poll(_QUEUE_SECONDS)
            except KafkaException as error:
                raise Undelivered(f"a message to {target}: {error.args[0].str()}") from error
            else:
                return

    def _flush(self) -> None:
        """Wait until all is acknowledged, and write the remaining marks."""
        left = self._producer.flush(_FLUSH_SECONDS_MAX)
        failure = self._noted.failure or (
            f"{left} messages without an acknowledgement" if left else None
        )
        if failure is not None:
            raise Undelivered(f"the last letters may or may not have arrived: {failure}")
        while self._unmarked:
            self._mark(self._unmarked.pop(0))


class _Group:
    """Letters that are marked together, once all of them are acknowledged."""

    def __init__(self) -> None:
        self.marks: dict[int, Marks] = {}
        self.sent = 0
        self.settled = 0
        self.failure: str | None = None

    @property
    def is_settled(self) -> bool:
        """Whether all of them were reported."""
        return self.settled == self.sent

    def add(self, partition: int, offset: Offset) -> None:
        """Add a letter that was sent."""
        self.sent += 1
        marks = self.marks.get(partition)
        if marks is None:
            marks = self.marks[partition] = Marks()
        marks.add(offset, offset + 1)

    def report(self, error: KafkaError | None, _: object) -> None:
        """Handle the delivery report of one letter."""
        self.settled += 1
        if error is not None:
            self.failure = self.failure or error.str()


def _pace(per_second_max: float | None) -> Iterator[None]:
    """Yield at no more than the given rate."""
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
    """Send the letters of a dead-letter topic back; returns the result, raises Undelivered.

    Letters that were sent back before are skipped. `progress` is called in another thread.
    """
    redriver = Redriver(client, topic, settings or RedriveSettings())
    return await asyncio.to_thread(redriver.run, progress)
