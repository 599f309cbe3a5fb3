"""kafka-python, which is pure Python."""

# mypy: disable-error-code="no-untyped-call, attr-defined"

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tests.compat.clients.client import SECONDS_MAX, Does, Seen, Sent
from tests.compat.clients.polling import PollingMember

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its own, about how it reads its files
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic


class _Producer:
    def __init__(self, bootstrap: str, codec: str, *, is_idempotent: bool) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
            enable_idempotence=is_idempotent,
            retries=1000,
            max_block_ms=SECONDS_MAX * 1000,
        )

    def send(self, topic: str, records: Sequence[Sent]) -> None:
        futures = [
            self._producer.send(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        for future in futures:
            future.get(SECONDS_MAX)

    def close(self) -> None:
        self._producer.close(SECONDS_MAX)


class KafkaPython:
    """The oldest client for Python."""

    name = "kafka-python"
    does = frozenset(Does)

    def producer(self, bootstrap: str, *, codec: str, is_idempotent: bool) -> _Producer:
        """Open a producer."""
        return _Producer(bootstrap, codec, is_idempotent=is_idempotent)

    def read(
        self, bootstrap: str, topic: str, *, count: int, from_ms: int | None = None
    ) -> list[Seen]:
        """Read from partition 0."""
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek(where, 0)
        if from_ms is not None:
            consumer.seek(where, consumer.offsets_for_times({where: from_ms})[where].offset)
        seen: list[Seen] = []
        end = time.monotonic() + SECONDS_MAX
        while len(seen) < count and time.monotonic() < end:
            seen += _polled(consumer)
        consumer.close()
        return seen

    def join(self, bootstrap: str, topic: str, group: str) -> PollingMember:
        """Become a member of a group."""
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
        )

        def leave() -> None:
            consumer.commit()
            consumer.close()

        return PollingMember(
            lambda: _polled(consumer),
            lambda: {one.partition for one in consumer.assignment()},
            leave,
        )

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, settings: Mapping[str, str]
    ) -> None:
        """Create a topic."""
        with _admin(bootstrap) as admin:
            new = NewTopic(topic, partitions, 1, topic_configs=dict(settings))
            admin.create_topics([new])

    def settings(self, bootstrap: str, topic: str) -> dict[str, str]:
        """Return all settings of a topic."""
        with _admin(bootstrap) as admin:
            wanted = [ConfigResource(ConfigResourceType.TOPIC, topic)]
            found = admin.describe_configs(wanted, config_filter="all")
        return _values(found, topic)

    def change_setting(self, bootstrap: str, topic: str, name: str, value: str) -> None:
        """Set one setting."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={name: value})
        with _admin(bootstrap) as admin:
            admin.alter_configs([resource])

    def add_partitions(self, bootstrap: str, topic: str, partitions: int) -> None:
        """Raise a topic's number of partitions."""
        with _admin(bootstrap) as admin:
            admin.create_partitions({topic: NewPartitions(partitions)})

    def topics(self, bootstrap: str) -> set[str]:
        """Return the names of all topics."""
        with _admin(bootstrap) as admin:
            return set(admin.list_topics())

    def delete_topic(self, bootstrap: str, topic: str) -> None:
        """Delete a topic."""
        with _admin(bootstrap) as admin:
            admin.delete_topics([topic])


class _admin:  # noqa: N801 - reads as a function where it is used
    """An admin client that is closed at the end."""

    def __init__(self, bootstrap: str) -> None:
        self._client = KafkaAdminClient(bootstrap_servers=bootstrap)

    def __enter__(self) -> Any:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _values(found: Any, topic: str) -> dict[str, str]:
    return {name: entry["value"] for name, entry in found["topic"][topic].items()}


def _polled(consumer: Any) -> list[Seen]:
    return [
        Seen(
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
        )
        for records in consumer.poll(timeout_ms=100).values()
        for record in records
    ]
