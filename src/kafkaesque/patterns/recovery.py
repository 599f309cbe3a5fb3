"""Whether the copy of a failed message exists already: what a worker's successor has to know."""

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kafkaesque.clock import SystemClock
from kafkaesque.errors import PatternError
from kafkaesque.patterns.committer import Place
from kafkaesque.patterns.connection import CONSUME_BATCH_MAX, Client, patiently, settings
from kafkaesque.patterns.dead_letter import SOURCE
from kafkaesque.patterns.intents import Intent
from kafkaesque.patterns.intents import decode as decode_intents
from kafkaesque.patterns.message import text_header, to_headers
from kafkaesque.types import Offset

if TYPE_CHECKING:
    from collections.abc import Iterable

FIND_MS_MAX = 20_000
_POLL_SECONDS = 0.2
_ASK_SECONDS = 2.0


def find_copy(client: Client, topic: str, intent: Intent, source: str) -> bool:
    """Return whether the topic holds a copy of the source, where it was to go. Blocks.

    Raises PatternError if that cannot be found out.
    """
    clock = SystemClock()
    ends = clock.monotonic_ms() + FIND_MS_MAX
    place = TopicPartition(topic, intent.partition, intent.start)
    consumer = Consumer(
        settings(
            client,
            {},
            {
                "group.id": "kafkaesque-recovery",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            },
        )
    )
    try:
        _, high = patiently(
            lambda: consumer.get_watermark_offsets(place, timeout=_ASK_SECONDS, cached=False)
        )
        consumer.assign([place])
        position = intent.start
        while position < high:
            for raw in consumer.consume(CONSUME_BATCH_MAX, _POLL_SECONDS):
                if raw.error() is not None:
                    continue
                if text_header(to_headers(raw.headers()), SOURCE) == source:
                    return True
                position = (raw.offset() or 0) + 1
            if clock.monotonic_ms() > ends:
                raise PatternError(f"{topic} could not be searched for a copy of {source}")
    except KafkaException as error:
        raise PatternError(f"{topic} cannot be searched: {error.args[0].str()}") from error
    finally:
        consumer.close()
    return False


def read_intents(
    consumer: Consumer, places: "Iterable[Place]"
) -> dict[tuple[str, int, Offset], Intent]:
    """Return what the former owners of partitions intended, by topic, partition and offset."""
    wanted = [TopicPartition(*place) for place in places]
    found: dict[tuple[str, int, Offset], Intent] = {}
    for one in _committed(consumer, wanted):
        for offset, intent in decode_intents(one.metadata).items():
            if offset >= one.offset:
                found[one.topic, one.partition, offset] = intent
    return found


def _committed(consumer: Consumer, wanted: list[TopicPartition]) -> list[TopicPartition]:
    return list(patiently(lambda: consumer.committed(wanted, timeout=_ASK_SECONDS)))
