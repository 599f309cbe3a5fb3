"""Batches of an idempotent producer are written once and in order."""

import pytest

from kafkaesque.client.admin import Admin
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import RefusedForNow
from kafkaesque.client.producer import EncodedRecords
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import HEADER_BYTES, Codec
from kafkaesque.testing import Broker

NOW_MS = 1_900_000_000_000
BRIEF_MS = 3_000
"""Enough on any machine for what succeeds; what fails is tried for so long."""


def encoded(*values: bytes) -> EncodedRecords:
    records = [
        Record(offset=number, timestamp_ms=NOW_MS, key=None, value=value)
        for number, value in enumerate(values)
    ]
    data = bytes(build_batch(records)[HEADER_BYTES:])
    return EncodedRecords(data=data, count=len(values), timestamp_ms=NOW_MS)


def values(admin: Admin, topic: str, partition: int) -> list[bytes | None]:
    fetched = admin.batches.fetch(topic, partition, 0)
    return [record.value for batch in fetched.batches for record in read_records(batch)]


@pytest.mark.parametrize("codec", Codec)
def test_each_partition_gets_its_batches_in_order(broker: Broker, topic: str, codec: Codec) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(topic, partitions=2)
        producer = admin.producer(codec)
        producer.send({(topic, 0): encoded(b"a", b"b"), (topic, 1): encoded(b"c")})
        producer.send({(topic, 0): encoded(b"d")})
        assert values(admin, topic, 0) == [b"a", b"b", b"d"]
        assert values(admin, topic, 1) == [b"c"]


def test_batches_carry_one_identity_and_growing_sequences(broker: Broker, topic: str) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(topic, partitions=1)
        producer = admin.producer()
        producer.send({(topic, 0): encoded(b"a", b"b")})
        producer.send({(topic, 0): encoded(b"c")})
        first, second = admin.batches.fetch(topic, 0, 0).batches
        assert first.producer_id == second.producer_id >= 0
        assert (first.base_sequence, second.base_sequence) == (0, 2)


def test_a_failed_producer_cannot_be_used_again(broker: Broker, topic: str) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(topic, partitions=1)
    with Admin(broker.bootstrap, ClientConfig(deadline_ms=BRIEF_MS)) as admin:
        producer = admin.producer()
        with pytest.raises(RefusedForNow, match="partition 7"):
            producer.send({(topic, 7): encoded(b"a")})
        assert producer.is_spent
