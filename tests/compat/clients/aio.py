"""aiokafka, driven from a thread that runs its event loop."""

# mypy: disable-error-code="no-untyped-call, attr-defined"

import asyncio
import threading
import warnings
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from tests.compat.clients.client import SECONDS_MAX, Does, Seen, Sent
from tests.compat.clients.polling import PollingMember

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

R = TypeVar("R")


class _Loop:
    """An event loop in a thread; it ends with `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(2 * SECONDS_MAX)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS_MAX)
        self._loop.close()


class _Producer:
    def __init__(self, bootstrap: str, codec: str, *, is_idempotent: bool) -> None:
        self._loop = _Loop()
        self._producer = self._loop.run(self._opened(bootstrap, codec, is_idempotent=is_idempotent))

    async def _opened(self, bootstrap: str, codec: str, *, is_idempotent: bool) -> Any:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
            enable_idempotence=is_idempotent,
        )
        await producer.start()
        return producer

    def send(self, topic: str, records: Sequence[Sent]) -> None:
        self._loop.run(self._send(topic, records))

    async def _send(self, topic: str, records: Sequence[Sent]) -> None:
        futures = [
            await self._producer.send(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        await asyncio.wait_for(asyncio.gather(*futures), SECONDS_MAX)

    def close(self) -> None:
        self._loop.run(self._producer.stop())
        self._loop.close()


class AioKafka:
    """The client of asyncio programs."""

    name = "aiokafka"
    does = frozenset(Does)

    def producer(self, bootstrap: str, *, codec: str, is_idempotent: bool) -> _Producer:
        """Open a producer."""
        return _Producer(bootstrap, codec, is_idempotent=is_idempotent)

    def read(
        self, bootstrap: str, topic: str, *, count: int, from_ms: int | None = None
    ) -> list[Seen]:
        """Read from partition 0."""
        return asyncio.run(_read(bootstrap, topic, count, from_ms))

    def join(self, bootstrap: str, topic: str, group: str) -> PollingMember:
        """Become a member of a group."""
        loop = _Loop()
        consumer = loop.run(_joined(bootstrap, topic, group))

        def leave() -> None:
            loop.run(_left(consumer))
            loop.close()

        return PollingMember(
            lambda: loop.run(_polled(consumer)),
            lambda: {one.partition for one in consumer.assignment()},
            leave,
        )

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, settings: Mapping[str, str]
    ) -> None:
        """Create a topic."""
        new = NewTopic(topic, partitions, 1, topic_configs=dict(settings))
        asyncio.run(_administer(bootstrap, "create_topics", [new]))

    def settings(self, bootstrap: str, topic: str) -> dict[str, str]:
        """Return all settings of a topic."""
        wanted = [ConfigResource(ConfigResourceType.TOPIC, topic)]
        (answer,) = asyncio.run(_administer(bootstrap, "describe_configs", wanted))
        (resource,) = answer.resources
        return {entry[0]: entry[1] for entry in resource[4]}

    def change_setting(self, bootstrap: str, topic: str, name: str, value: str) -> None:
        """Set one setting; the client can only replace all of them, so they are read first."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={name: value})
        asyncio.run(_administer(bootstrap, "alter_configs", [resource]))

    def add_partitions(self, bootstrap: str, topic: str, partitions: int) -> None:
        """Raise a topic's number of partitions."""
        asyncio.run(_administer(bootstrap, "create_partitions", {topic: NewPartitions(partitions)}))

    def topics(self, bootstrap: str) -> set[str]:
        """Return the names of all topics."""
        return set(asyncio.run(_administer(bootstrap, "list_topics")))

    def delete_topic(self, bootstrap: str, topic: str) -> None:
        """Delete a topic."""
        asyncio.run(_administer(bootstrap, "delete_topics", [topic]))


async def _read(bootstrap: str, topic: str, count: int, from_ms: int | None) -> list[Seen]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    await consumer.start()
    try:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek(where, 0)
        if from_ms is not None:
            consumer.seek(where, (await consumer.offsets_for_times({where: from_ms}))[where].offset)
        seen: list[Seen] = []
        async with asyncio.timeout(SECONDS_MAX):
            while len(seen) < count:
                seen += await _polled(consumer)
        return seen
    finally:
        await consumer.stop()


async def _joined(bootstrap: str, topic: str, group: str) -> Any:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=200,
    )
    await consumer.start()
    return consumer


async def _polled(consumer: Any) -> list[Seen]:
    found = await consumer.getmany(timeout_ms=100)
    return [
        Seen(
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
        )
        for records in found.values()
        for record in records
    ]


async def _left(consumer: Any) -> None:
    await consumer.commit()
    await consumer.stop()


async def _administer(bootstrap: str, method: str, *arguments: Any) -> Any:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        return await getattr(admin, method)(*arguments)
    finally:
        await admin.close()
