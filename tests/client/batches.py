"""Records for our own client's tests, and what readers of committed records see of them."""

import time

from confluent_kafka import Consumer, TopicPartition

from kafkaesque.client.producer import EncodedRecords
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import HEADER_BYTES

NOW_MS = 1_900_000_000_000
SECONDS_MAX = 120.0


def encoded(*values: bytes) -> EncodedRecords:
    """Return records with these values."""
    records = [
        Record(offset=number, timestamp_ms=NOW_MS, key=None, value=value)
        for number, value in enumerate(values)
    ]
    data = bytes(build_batch(records)[HEADER_BYTES:])
    return EncodedRecords(data=data, count=len(values), timestamp_ms=NOW_MS)


def committed(bootstrap: str, topic: str, partition: int) -> list[bytes]:
    """Return what librdkafka reads of a partition up to its last stable offset.

    It waits until no transaction is open there: an end is decided before its marker is written.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    raw = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "raw",
            "isolation.level": "read_uncommitted",
        }
    )
    place = TopicPartition(topic, partition, 0)
    deadline = time.monotonic() + SECONDS_MAX
    try:
        while end(consumer, place) < end(raw, place):
            assert time.monotonic() < deadline, "a transaction stays open"
        consumer.assign([place])
        found: list[bytes] = []
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                return found  # the end
            found.append(message.value() or b"")
        raise AssertionError("the end did not come")
    finally:
        consumer.close()
        raw.close()


def end(consumer: Consumer, place: TopicPartition) -> int:
    """Return the end of the records that this consumer may see."""
    return int(consumer.get_watermark_offsets(place, timeout=SECONDS_MAX)[1])
