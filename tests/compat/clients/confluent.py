"""confluent-kafka, and with it librdkafka."""

# mypy: disable-error-code="no-untyped-call, attr-defined"

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from tests.compat.clients.client import SECONDS_MAX, Does, Seen, Sent
from tests.compat.clients.polling import PollingMember


class _Producer:
    def __init__(self, bootstrap: str, codec: str, *, is_idempotent: bool) -> None:
        self._producer = ConfluentProducer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": is_idempotent,
                "linger.ms": 1,
            }
        )

    def send(self, topic: str, records: Sequence[Sent]) -> None:
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        for record in records:
            self._producer.produce(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                timestamp=record.timestamp_ms or 0,
                on_delivery=delivered,
            )
            self._producer.poll(0)
        assert self._producer.flush(SECONDS_MAX) == 0
        assert failures == []

    def close(self) -> None:
        self._producer.flush(SECONDS_MAX)


class Confluent:
    """The client of most Python programs."""

    name = "confluent-kafka"
    does = frozenset(Does)

    def producer(self, bootstrap: str, *, codec: str, is_idempotent: bool) -> _Producer:
        """Open a producer."""
        return _Producer(bootstrap, codec, is_idempotent=is_idempotent)

    def read(
        self, bootstrap: str, topic: str, *, count: int, from_ms: int | None = None
    ) -> list[Seen]:
        """Read from partition 0."""
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
        )
        where = TopicPartition(topic, 0, 0)
        if from_ms is not None:
            (where,) = consumer.offsets_for_times(
                [TopicPartition(topic, 0, from_ms)], timeout=SECONDS_MAX
            )
        consumer.assign([where])
        seen: list[Seen] = []
        end = time.monotonic() + SECONDS_MAX
        while len(seen) < count and time.monotonic() < end:
            seen += [_seen(message) for message in consumer.consume(count - len(seen), 0.2)]
        consumer.close()
        return seen

    def join(self, bootstrap: str, topic: str, group: str) -> PollingMember:
        """Become a member of a group."""
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 200,
            }
        )
        consumer.subscribe([topic])

        def poll() -> list[Seen]:
            return [_seen(message) for message in consumer.consume(100, 0.1)]

        def leave() -> None:
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:  # it saw nothing since the last rebalance
                if error.args[0].code() != KafkaError._NO_OFFSET:
                    raise
            consumer.close()

        return PollingMember(poll, lambda: {one.partition for one in consumer.assignment()}, leave)

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, settings: Mapping[str, str]
    ) -> None:
        """Create a topic."""
        new = NewTopic(topic, num_partitions=partitions, config=dict(settings))
        admin = _admin(bootstrap)  # it must outlive its futures
        admin.create_topics([new])[topic].result(SECONDS_MAX)

    def settings(self, bootstrap: str, topic: str) -> dict[str, str]:
        """Return all settings of a topic."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        admin = _admin(bootstrap)
        found = admin.describe_configs([resource])[resource].result(SECONDS_MAX)
        return {name: entry.value for name, entry in found.items()}

    def change_setting(self, bootstrap: str, topic: str, name: str, value: str) -> None:
        """Set one setting."""
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin = _admin(bootstrap)
        admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)

    def add_partitions(self, bootstrap: str, topic: str, partitions: int) -> None:
        """Raise a topic's number of partitions."""
        admin = _admin(bootstrap)
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(SECONDS_MAX)

    def topics(self, bootstrap: str) -> set[str]:
        """Return the names of all topics."""
        return set(_admin(bootstrap).list_topics(timeout=SECONDS_MAX).topics)

    def delete_topic(self, bootstrap: str, topic: str) -> None:
        """Delete a topic."""
        admin = _admin(bootstrap)
        admin.delete_topics([topic])[topic].result(SECONDS_MAX)


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def _seen(message: Message) -> Seen:
    assert message.error() is None, message.error()
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return Seen(
        partition=partition,
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),  # type: ignore[arg-type]
    )
