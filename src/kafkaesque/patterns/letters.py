"""Reading a dead-letter topic: its letters up to now, and which of them were sent back."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as ClientMessage

from kafkaesque.clock import SystemClock
from kafkaesque.errors import PatternError
from kafkaesque.patterns.connection import (
    CONSUME_BATCH_MAX,
    Client,
    Ends,
    partitions_of,
    settings,
    topic_counts,
)
from kafkaesque.patterns.dead_letter import DeadLetter, decode
from kafkaesque.patterns.marks import REDRIVEN_SUFFIX, Marks
from kafkaesque.patterns.marks import decode as decode_marks
from kafkaesque.patterns.message import Message, from_client
from kafkaesque.patterns.retry_plan import DEAD_LETTER_SUFFIX
from kafkaesque.types import Offset

_POLL_SECONDS = 0.1
_SILENCE_MS_MAX = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One dead letter."""

    message: Message

    @property
    def dead(self) -> DeadLetter | None:
        """What its headers say; None if they are not ours. Read anew each time."""
        return decode(self.message)


def dead_letter_topics(client: Client) -> list[str]:
    """Return the topics that are called like dead-letter topics, sorted. Blocks."""
    return sorted(name for name in topic_counts(client) if name.endswith(DEAD_LETTER_SUFFIX))


def read_all(client: Client, topic: str) -> Iterator[Message]:
    """Yield the messages that a topic holds now, partition by partition mixed. Blocks."""
    return map(from_client, _read_all(client, topic, partitions_of(client, topic)))


def _read_all(client: Client, topic: str, count: int) -> Iterator[ClientMessage]:
    consumer = Consumer(
        settings(
            client,
            {},
            {
                "group.id": "kafkaesque-letters",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            },
        )
    )
    try:
        # Not the consumer's own answer: one that has met an unknown partition does not ask again.
        yield from _read(consumer, topic, Ends(client).ask(topic, range(count)))
    except KafkaException as error:
        raise PatternError(f"{topic} cannot be read: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, asked: Mapping[int, Offset]) -> Iterator[ClientMessage]:
    clock = SystemClock()
    ends = {partition: end for partition, end in asked.items() if end > 0}
    if not ends:
        return
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in ends])
    heard_ms = clock.monotonic_ms()
    while ends:
        batch = consumer.consume(CONSUME_BATCH_MAX, _POLL_SECONDS)
        if any(raw.error() is None for raw in batch):
            heard_ms = clock.monotonic_ms()
        elif clock.monotonic_ms() - heard_ms > _SILENCE_MS_MAX:
            raise PatternError(f"{topic} could not be read to its end: no broker answers")
        for raw in batch:
            error, partition = raw.error(), raw.partition() or 0
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    ends.pop(partition, None)
                continue
            end, offset = ends.get(partition, 0), raw.offset() or 0
            if offset < end:
                yield raw
            if offset >= end - 1:
                ends.pop(partition, None)


def read_marks(client: Client, topic: str, count: int | None = None) -> Mapping[int, Marks]:
    """Return which letters of a topic were sent back, by partition; blocks, raises PatternError.

    Who knows that the topic of the marks is there says how many partitions it has: a broker that
    was away may not know of it yet. Else it is looked for, and no such topic has no marks.
    """
    marks: dict[int, Marks] = defaultdict(Marks)
    if count is None:
        counts = topic_counts(client)
        if topic not in counts:
            raise PatternError(f"there is no topic {topic}")
        count = counts.get(topic + REDRIVEN_SUFFIX)
    if count is None:
        return marks
    for raw in _read_all(client, topic + REDRIVEN_SUFFIX, count):
        note = from_client(raw)
        key = note.key or b""
        if key.isdigit() and len(key) <= 10:
            for start, end in decode_marks(note.value):
                marks[int(key)].add(start, end)
    return marks


def open_letters(client: Client, topic: str, marks: Mapping[int, Marks]) -> Iterator[Letter]:
    """Yield the letters of a topic that were not sent back. Blocks."""
    for raw in open_messages(client, topic, marks):
        yield Letter(message=from_client(raw))


def open_messages(
    client: Client, topic: str, marks: Mapping[int, Marks]
) -> Iterator[ClientMessage]:
    """Yield the same as the client gives them, for those who read many. Blocks."""
    for raw in _read_all(client, topic, partitions_of(client, topic)):
        sent_back = marks.get(raw.partition() or 0)
        if sent_back is None or (raw.offset() or 0) not in sent_back:
            yield raw
