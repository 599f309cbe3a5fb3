"""Reads a dead-letter topic: its letters up to now, and which of them were sent back."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import Message as ClientMessage

from kafkaesque.errors import PatternError
from kafkaesque.patterns.connection import Client, Ends, partitions_of, topic_counts
from kafkaesque.patterns.dead_letter import DeadLetter, decode
from kafkaesque.patterns.marks import REDRIVEN_SUFFIX, Marks
from kafkaesque.patterns.marks import decode as decode_marks
from kafkaesque.patterns.message import Message, from_client
from kafkaesque.patterns.parts import read_parts
from kafkaesque.patterns.retry_plan import DEAD_LETTER_SUFFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One dead letter."""

    message: Message

    @property
    def dead(self) -> DeadLetter | None:
        """The contents of its headers; None if they are foreign. Decoded on each access."""
        return decode(self.message)


def dead_letter_topics(client: Client) -> list[str]:
    """Return the topics with the name of a dead-letter topic, sorted. Blocks."""
    return sorted(name for name in topic_counts(client) if name.endswith(DEAD_LETTER_SUFFIX))


def read_all(client: Client, topic: str) -> Iterator[Message]:
    """Yield the messages that a topic holds now, with partitions interleaved. Blocks."""
    return map(from_client, _read_all(client, topic, partitions_of(client, topic)))


def _read_all(client: Client, topic: str, count: int) -> Iterator[ClientMessage]:
    # Messages of open transactions are not letters yet, and are not awaited.
    ends = Ends(client).ask(topic, range(count), is_committed=True)
    return read_parts(client, topic, dict.fromkeys(ends, 0), ends)


def read_marks(client: Client, topic: str, count: int | None = None) -> Mapping[int, Marks]:
    """Return which letters of a topic were sent back, by partition; blocks, raises PatternError.

    `count` is the number of partitions of the marks' topic, for callers that know that it exists: a
    broker that was away may not know it yet. Otherwise it is looked up; no topic means no marks.
    """
    marks: dict[int, Marks] = defaultdict(Marks)
    if count is None:
        counts = topic_counts(client)
        if topic not in counts:
            raise PatternError(f"there is no topic {topic}")
        count = counts.get(topic + REDRIVEN_SUFFIX)
    if count is None:
        return marks
    name = topic + REDRIVEN_SUFFIX
    ends = Ends(client).ask(name, range(count))
    for raw in read_parts(client, name, dict.fromkeys(ends, 0), ends):
        note = from_client(raw)
        key = note.key or b""
        if key.isdigit() and len(key) <= 10:
            for start, end in decode_marks(note.value):
                marks[int(key)].add(start, end)
    return marks


def open_letters(client: Client, topic: str, marks: Mapping[int, Marks]) -> Iterator[Letter]:
    """Yield the letters of a topic that were not sent back. Blocks."""
    for raw in open_messages(client, topic, marks, partitions_of(client, topic)):
        yield Letter(message=from_client(raw))


def open_messages(
    client: Client, topic: str, marks: Mapping[int, Marks], count: int
) -> Iterator[ClientMessage]:
    """Yield the same as the client returns them, which is faster; `count` partitions."""
    for raw in _read_all(client, topic, count):
        sent_back = marks.get(raw.partition() or 0)
        if sent_back is None or (raw.offset() or 0) not in sent_back:
            yield raw
