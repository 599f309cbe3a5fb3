"""What the tests of pipelines share: data in, jobs to their end, records out."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from kafkaesque.clock import SystemClock
from kafkaesque.record.aborted import AbortedBatches
from kafkaesque.record.build import build_batch
from kafkaesque.record.key_partition import partition_of
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.spark.pipelines.messages import Message
from kafkaesque.spark.pipelines.query_runner import Fare, run
from kafkaesque.spark.pipelines.settings import PipelineSettings
from tests.spark.conftest import Topics

NOW_MS = SystemClock().now_ms()
PARTITIONS = 2


def create(topics: Topics, settings: PipelineSettings) -> None:
    """Create the topics of a pipeline."""
    for topic in settings.topics:
        topics.create(topic, PARTITIONS)


def send(
    topics: Topics,
    settings: PipelineSettings,
    messages: Sequence[Message[Any]],
    now_ms: int = NOW_MS,
) -> None:
    """Send messages like a client that partitions by key."""
    by_place: dict[tuple[str, int], list[Record]] = {}
    for message in messages:
        key = message.key.encode()
        place = (getattr(settings, message.to), partition_of(key, PARTITIONS))
        own = by_place.setdefault(place, [])
        value = None if message.value is None else message.value.encode()
        own.append(Record(offset=len(own), timestamp_ms=now_ms, key=key, value=value))
    for (topic, partition), records in by_place.items():
        topics.admin.batches.produce(topic, partition, build_batch(records))


def finish(jobs: Sequence[Any]) -> list[Fare]:
    """Run jobs to their end, in turn."""
    return run(jobs, lambda _: None, is_in_turn=True)


def to_its_end(start: Callable[[], Any]) -> Any:
    """Run one query to its end; return the query of its last start."""
    started: list[Any] = []

    def job() -> Any:
        started.append(start())
        return started[-1]

    finish([job])
    return started[-1]


def records(topics: Topics, topic: str) -> list[Record]:
    """Return all committed records of a topic, partition by partition."""
    found: list[Record] = []
    for partition in topics.admin.topics.describe(topic).partitions:
        offset = 0
        # Ends: each turn moves the offset on.
        while True:
            fetched = topics.admin.batches.fetch(topic, partition.index, offset, is_committed=True)
            if not fetched.batches:
                break
            aborted = AbortedBatches((one.producer_id, one.first_offset) for one in fetched.aborted)
            kept = [batch for batch in fetched.batches if not aborted.leaves_out(batch)]
            data = [batch for batch in kept if not batch.is_control]
            found += [record for batch in data for record in read_records(batch)]
            offset = fetched.batches[-1].end_offset
    return found


def said(topics: Topics, topic: str) -> list[Any]:
    """Return the values of a topic's records, read as JSON."""
    return [json.loads(record.value or b"") for record in records(topics, topic)]


def reasons(topics: Topics, topic: str) -> dict[bytes, str]:
    """Return why each value became a dead letter."""
    return {
        one.value or b"": (dict(one.headers)["reason"] or b"").decode()
        for one in records(topics, topic)
    }
