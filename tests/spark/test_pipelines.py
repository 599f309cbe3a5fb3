"""Each pipeline finds exactly what plain Python finds in the same data."""

import dataclasses
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from kafkaesque.spark.pipelines import commitlog, enrich, logs, metrics, suggestions
from kafkaesque.spark.pipelines.blocks import Place
from kafkaesque.spark.pipelines.commitlog_events import Change, CommitlogSettings
from kafkaesque.spark.pipelines.commitlog_events import generate as generate_changes
from kafkaesque.spark.pipelines.enrich_events import (
    EnrichSettings,
    Order,
    Payment,
    Product,
    products,
)
from kafkaesque.spark.pipelines.enrich_events import generate as generate_orders
from kafkaesque.spark.pipelines.logs_events import LogsSettings
from kafkaesque.spark.pipelines.logs_events import generate as generate_lines
from kafkaesque.spark.pipelines.messages import Message
from kafkaesque.spark.pipelines.metrics_events import MetricsSettings, Sample
from kafkaesque.spark.pipelines.metrics_events import generate as generate_samples
from kafkaesque.spark.pipelines.suggestions_events import SuggestionsSettings, View
from kafkaesque.spark.pipelines.suggestions_events import generate as generate_views
from kafkaesque.spark.pipelines.versions import Versions
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import NOW_MS, create, finish, reasons, records, said, send

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def a_place(topics: Topics, folder: Path) -> Place:
    return Place(bootstrap=topics.bootstrap, folder=folder, is_once=True)


def broken_values(messages: Iterable[Message[Any]]) -> set[bytes]:
    return {(one.value or "").encode() for one in messages if one.event is None}


def plain_windows(samples: list[Sample], settings: MetricsSettings) -> dict[Any, dict[str, float]]:
    size_ms = settings.window_s * 1_000
    newest = max(one.at for one in samples) - settings.lateness_s * 1_000
    groups: defaultdict[Any, list[float]] = defaultdict(list)
    for one in samples:
        groups[one.service, one.metric, one.at // size_ms * size_ms].append(one.value)
    return {
        key: {
            "count": len(values),
            "sum": sum(values),
            "min": min(values),
            "max": max(values),
            **{p: sorted(values)[math.ceil(s * len(values)) - 1] for p, s in SHARES.items()},
        }
        for key, values in groups.items()
        if key[2] + size_ms <= newest
    }


@pytest.mark.requirement("PIPE-2")
def test_windows_of_metrics_match_plain_python(spark: Any, topics: Topics, tmp_path: Path) -> None:
    settings = MetricsSettings()
    create(topics, settings)
    messages = list(generate_samples(5, 3_000, START_MS))
    send(topics, settings, messages)
    place = a_place(topics, tmp_path / "metrics")
    finish(metrics.jobs(spark, place, settings))

    wanted = plain_windows([one.event for one in messages if one.event is not None], settings)
    found = said(topics, settings.windows_topic)
    assert len(found) == len(wanted) > 50
    for row in found:
        own = wanted[row["service"], row["metric"], row["started_at"]]
        assert {name: row[name] for name in own} == pytest.approx(own)
    assert spark.read.parquet(str(place.table("windows"))).count() == len(wanted)
    letters = reasons(topics, settings.dead_letter_topic)
    assert letters.keys() == broken_values(messages)
    assert set(letters.values()) == {"the value is not a JSON object", "there is no service"}
    ends = topics.admin.groups.offsets("pipeline-metrics-windows")
    assert sum(ends.values()) == len(messages)


@pytest.mark.requirement("PIPE-3")
def test_lines_of_every_format_are_parsed_back_to_their_fields(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    settings = LogsSettings()
    create(topics, settings)
    start_ms = NOW_MS - 3 * 86_400_000
    messages = list(generate_lines(5, 1_000, start_ms))
    send(topics, settings, messages)
    place = a_place(topics, tmp_path / "logs")
    finish(logs.jobs(spark, place, settings))

    wanted = sorted(
        json.dumps(dataclasses.asdict(one.event), sort_keys=True)
        for one in messages
        if one.event is not None
    )
    names = [one.name for one in dataclasses.fields(messages[0].event or object())]  # type: ignore[arg-type]
    found = [
        json.dumps({name: row[name] for name in names}, sort_keys=True)
        for row in said(topics, settings.lines_topic)
    ]
    assert sorted(found) == wanted
    table = spark.read.parquet(str(place.table("lines")))
    assert table.count() == len(wanted)
    assert table.where("to_date(timestamp_millis(at)) != day").count() == 0
    assert {row.format for row in table.select("format").distinct().collect()} == {
        "combined",
        "rfc3164",
        "rfc5424",
        "json",
    }
    letters = reasons(topics, settings.dead_letter_topic)
    assert letters.keys() == broken_values(messages)
    assert set(letters.values()) == {
        "the format of the line is unknown",
        "the time is not readable",
    }


@pytest.mark.requirement("PIPE-4")
def test_orders_are_joined_with_the_product_of_their_time_and_timely_payments(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    settings = EnrichSettings(payment_s=60)
    create(topics, settings)
    messages = list(generate_orders(5, 400, START_MS))
    half = len(messages) // 2
    place = a_place(topics, tmp_path / "enrich")
    sold: dict[str, Product] = {}
    wanted: dict[str, tuple[str | None, int]] = {}
    unsold = set()
    for part in (messages[:half], [*products(6), *messages[half:]]):
        send(topics, settings, part)
        finish(enrich.jobs(spark, place, settings)[:1])
        for event in (one.event for one in part):
            if isinstance(event, Product):
                sold[event.product] = event
        for order in (one.event for one in part if isinstance(one.event, Order)):
            product = sold.get(order.product)
            if product is None or product.name is None:
                unsold.add(order.order)
            else:
                wanted[order.order] = (product.name, product.cents * order.count)
    found = {
        one["order"]: (one["name"], one["cents"]) for one in said(topics, settings.enriched_topic)
    }
    assert found == wanted
    letters = reasons(topics, settings.dead_letter_topic)
    no_product = {text for text, why in letters.items() if why == "there is no such product"}
    assert {json.loads(text)["order"] for text in no_product} == unsold
    assert letters.keys() - no_product == broken_values(messages)

    finish(enrich.jobs(spark, place, settings)[1:])
    orders = {one.event.order: one.event for one in messages if isinstance(one.event, Order)}
    payments = [one.event for one in messages if isinstance(one.event, Payment)]
    in_time = {one.order for one in payments if one.at - orders[one.order].at <= 60_000}
    assert {one["order"] for one in said(topics, settings.paid_topic)} == in_time
    assert 0 < len(in_time) < len(payments)


def plain_state(changes: Iterable[Message[Change]]) -> dict[tuple[str, str], Any]:
    state: dict[tuple[str, str], Any] = {}
    for change in (one.event for one in changes if one.event is not None):
        if change.row is None:
            state.pop((change.table, change.id), None)
        else:
            state[change.table, change.id] = change.row
    return state


@pytest.mark.requirement("PIPE-5")
def test_the_state_of_a_database_can_be_restored_at_any_offset_and_time(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    settings = CommitlogSettings()
    create(topics, settings)
    messages = list(generate_changes(5, 900, 0))
    parts = [messages[:300], messages[300:600], messages[600:]]
    ends = []
    for number, part in enumerate(parts):
        send(topics, settings, part, now_ms=NOW_MS - 30_000 + number * 10_000)
        places = topics.admin.topics.describe(settings.topic).places
        found = topics.admin.topics.offsets(places, -1)
        ends.append(json.dumps({str(at): offset for (_, at), offset in found.items()}))
    points = {
        CommitlogSettings(until_offsets=ends[0]): 300,
        CommitlogSettings(until_ms=NOW_MS - 15_000): 600,
        settings: 900,
    }
    for point, count in points.items():
        place = a_place(topics, tmp_path / str(count))
        fares = finish(commitlog.jobs(spark, place, point))
        assert fares[0].rows == count
        table = spark.read.parquet(str(place.table("state"))).collect()
        state = {(row.table, row.id): json.loads(row.row) for row in table}
        assert state == plain_state(messages[:count])
    letters = reasons(topics, settings.dead_letter_topic)
    assert letters.keys() == broken_values(messages)


def plain_suggestions(views: set[View], settings: SuggestionsSettings) -> dict[str, list[Any]]:
    by_visit: defaultdict[str, set[str]] = defaultdict(set)
    for one in views:
        by_visit[one.visit].add(one.product)
    alone = Counter(product for own in by_visit.values() for product in own)
    pairs = Counter(pair for own in by_visit.values() for pair in permutations(own, 2))
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for (product, other), visits in pairs.items():
        if visits >= settings.visits_min:
            lift = visits * len(by_visit) / (alone[product] * alone[other])
            found[product].append((-lift, -visits, other))
    return {
        product: [other for *_, other in sorted(own)[: settings.top]]
        for product, own in found.items()
    }


@pytest.mark.requirement("PIPE-7")
def test_the_nightly_batch_and_the_stream_suggest_what_plain_python_suggests(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    settings = SuggestionsSettings()
    create(topics, settings)
    messages = list(generate_views(5, 1_500, 0))
    place = a_place(topics, tmp_path / "suggestions")
    for part in (messages[:700], messages[700:]):
        send(topics, settings, part)
        finish(suggestions.jobs(spark, place, settings))
    wanted = plain_suggestions({one.event for one in messages if one.event is not None}, settings)
    last = {
        (one.key or b"").decode(): [
            each["other"] for each in json.loads(one.value or b"")["suggestions"]
        ]
        for one in records(topics, settings.suggestions_topic)
    }
    assert last == wanted
    table = Versions(spark, place.table("suggestions")).newest()
    assert table.count() == len(wanted) > 20
    letters = records(topics, settings.dead_letter_topic)
    assert {one.value for one in letters} == broken_values(messages)

    finish(suggestions.jobs(spark, place, dataclasses.replace(settings, mode="batch")))
    rows = spark.read.parquet(str(place.table("nightly"))).collect()
    assert {row.product: [one.other for one in row.suggestions] for row in rows} == wanted
