"""Whether the copy of a failed message already exists, which a worker's successor must know."""

from contextlib import closing
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from kafkaesque.patterns.committer import Place
from kafkaesque.patterns.connection import Client, Ends, patiently
from kafkaesque.patterns.dead_letter import SOURCE
from kafkaesque.patterns.intents import Intent
from kafkaesque.patterns.intents import decode as decode_intents
from kafkaesque.patterns.message import text_header, to_headers
from kafkaesque.patterns.parts import read_parts
from kafkaesque.types import Offset

if TYPE_CHECKING:
    from collections.abc import Iterable

_ASK_SECONDS = 2.0


def find_copy(client: Client, ends: Ends, topic: str, intent: Intent, source: str) -> bool:
    """Return whether the topic holds a copy of the source at the intended place. Blocks.

    Raises PatternError if it cannot find out.
    """
    at = intent.partition
    there = ends.ask(topic, [at])
    with closing(read_parts(client, topic, {at: intent.start}, there)) as messages:
        return any(text_header(to_headers(raw.headers()), SOURCE) == source for raw in messages)


def read_intents(
    consumer: Consumer, places: "Iterable[Place]"
) -> dict[tuple[str, int, Offset], Intent]:
    """Return the intents of partitions' former owners, by topic, partition and offset."""
    wanted = [TopicPartition(*place) for place in places]
    found: dict[tuple[str, int, Offset], Intent] = {}
    for one in _committed(consumer, wanted):
        for offset, intent in decode_intents(one.metadata).items():
            if offset >= one.offset:
                found[one.topic, one.partition, offset] = intent
    return found


def _committed(consumer: Consumer, wanted: list[TopicPartition]) -> list[TopicPartition]:
    return list(patiently(lambda: consumer.committed(wanted, timeout=_ASK_SECONDS)))
