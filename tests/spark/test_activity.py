"""The pipeline `activity` finds exactly what plain Python finds in the same data."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from kafkaesque.clock import SystemClock
from kafkaesque.record.build import build_batch
from kafkaesque.record.key_partition import partition_of
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.spark.pipelines import activity, activity_plain
from kafkaesque.spark.pipelines.activity_events import Event, Message, generate
from kafkaesque.spark.pipelines.blocks import Place
from kafkaesque.spark.pipelines.running import run
from tests.spark.conftest import Topics

pytestmark = pytest.mark.spark

NOW_MS = SystemClock().now_ms()
START_MS = 1_700_000_000_000
SETTINGS = activity.ActivitySettings()
PARTITIONS = 2


def exact_gap() -> list[Message]:
    """A visitor who pauses exactly as long as a session lasts, and one a millisecond longer."""
    gap_ms = SETTINGS.times.gap_s * 1_000
    events = [
        Event(user=user, kind="click", item="i", at_ms=at_ms)
        for user, pause_ms in (("exact", gap_ms), ("longer", gap_ms + 1))
        for at_ms in (START_MS, START_MS + pause_ms)
    ]
    ordered = sorted(events, key=lambda event: event.at_ms)
    return [Message(key=one.user, value=one.to_json(), event=one) for one in ordered]


def send(topics: Topics, messages: list[Message]) -> None:
    by_partition: dict[int, list[Record]] = {}
    for message in messages:
        key = message.key.encode()
        own = by_partition.setdefault(partition_of(key, PARTITIONS), [])
        value = message.value.encode()
        own.append(Record(offset=len(own), timestamp_ms=NOW_MS, key=key, value=value))
    for partition, records in by_partition.items():
        topics.admin.batches.produce(SETTINGS.topic, partition, build_batch(records))


def records(topics: Topics, topic: str) -> list[Record]:
    return [
        record
        for partition in topics.admin.topics.describe(topic).partitions
        for batch in topics.admin.batches.fetch(topic, partition.index, 0).batches
        for record in read_records(batch)
    ]


@pytest.mark.requirement("PIPE-6")
def test_sessions_counters_funnels_and_dead_letters_are_those_of_plain_python(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    for topic in SETTINGS.topics:
        topics.create(topic, PARTITIONS)
    messages = exact_gap() + list(generate(3, 2_000, START_MS + 3_600_000))
    events = [one.event for one in messages if one.event is not None]
    place = Place(bootstrap=topics.bootstrap, folder=tmp_path, is_once=True)
    shown: list[object] = []
    send(topics, messages[:1_200])
    # The first query is stopped in the middle of the data and goes on from its checkpoint.
    run(activity.jobs(spark, place, SETTINGS)[:1], shown.append, is_in_turn=True)
    send(topics, messages[1_200:])
    run(activity.jobs(spark, place, SETTINGS), shown.append, is_in_turn=True)

    wanted = [dataclasses.asdict(one) for one in activity_plain.sessions(events, SETTINGS.times)]
    found = [json.loads(one.value or b"") for one in records(topics, SETTINGS.sessions_topic)]
    by_start = sorted(found, key=lambda one: (one["user"], one["started_at"]))
    assert by_start == wanted
    assert len(wanted) > 20

    table = spark.read.parquet(str(place.table("sessions"))).drop("batch")
    rows = [row.asDict() for row in table.orderBy("user", "started_at").collect()]
    assert rows == wanted

    funnel = activity.funnels(spark, place).collect()
    assert sum(row.sessions for row in funnel) == len(wanted)
    assert sum(row.bought for row in funnel) == sum(one["stage"] == "buy" for one in wanted)

    counts = {}
    for record in records(topics, SETTINGS.counters_topic):
        said = json.loads(record.value or b"")
        counts[said["started_at"], said["kind"]] = said["count"]  # the last one counts
    assert counts == activity_plain.counters(events)

    broken = [one.value.encode() for one in messages if one.event is None]
    letters = records(topics, SETTINGS.dead_letter_topic)
    assert sorted(one.value or b"" for one in letters) == sorted(broken)
    reasons = {dict(one.headers)["reason"] for one in letters}
    assert reasons == {b"the value is no JSON object", b"the kind is not known"}
    assert shown


def test_the_same_seed_makes_up_the_same_data() -> None:
    assert list(generate(1, 50, 0)) == list(generate(1, 50, 0)) != list(generate(2, 50, 0))
