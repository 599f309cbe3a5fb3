"""The pipeline `activity` finds exactly what plain Python finds in the same data."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from kafkaesque.spark.pipelines import activity, activity_plain
from kafkaesque.spark.pipelines.activity_events import ActivitySettings, Event, generate
from kafkaesque.spark.pipelines.blocks import Place
from kafkaesque.spark.pipelines.messages import Message
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import create, finish, records, said, send

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
SETTINGS = ActivitySettings()


def exact_gap() -> list[Message[Event]]:
    """One visitor pauses exactly as long as a session lasts, and one a millisecond longer."""
    gap_ms = SETTINGS.times.gap_s * 1_000
    events = [
        Event(user=user, kind="click", item="i", at_ms=at_ms)
        for user, pause_ms in (("exact", gap_ms), ("longer", gap_ms + 1))
        for at_ms in (START_MS, START_MS + pause_ms)
    ]
    ordered = sorted(events, key=lambda event: event.at_ms)
    return [Message(key=one.user, value=one.to_json(), event=one) for one in ordered]


@pytest.mark.requirement("PIPE-6")
def test_sessions_counters_funnels_and_dead_letters_match_plain_python(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    create(topics, SETTINGS)
    messages = exact_gap() + list(generate(3, 2_000, START_MS + 3_600_000))
    events = [one.event for one in messages if one.event is not None]
    place = Place(bootstrap=topics.bootstrap, folder=tmp_path, is_once=True)
    send(topics, SETTINGS, messages[:1_200])
    # The first query is stopped in the middle of the data and continues from its checkpoint.
    finish(activity.jobs(spark, place, SETTINGS)[:1])
    send(topics, SETTINGS, messages[1_200:])
    finish(activity.jobs(spark, place, SETTINGS))

    wanted = [dataclasses.asdict(one) for one in activity_plain.sessions(events, SETTINGS.times)]
    found = said(topics, SETTINGS.sessions_topic)
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
        one = json.loads(record.value or b"")
        counts[one["started_at"], one["kind"]] = one["count"]  # the last one counts
    assert counts == activity_plain.counters(events)

    broken = [(one.value or "").encode() for one in messages if one.event is None]
    letters = records(topics, SETTINGS.dead_letter_topic)
    assert sorted(one.value or b"" for one in letters) == sorted(broken)
    reasons = {dict(one.headers)["reason"] for one in letters}
    assert reasons == {b"the value is not a JSON object", b"the kind is not known"}


def test_the_same_seed_generates_the_same_data() -> None:
    assert list(generate(1, 50, 0)) == list(generate(1, 50, 0)) != list(generate(2, 50, 0))
