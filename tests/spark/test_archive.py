"""An archive has every byte of a topic, and a replay restores all of them."""

from pathlib import Path
from typing import Any

import pytest

from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.pipelines import archive, replay
from kafkaesque.spark.pipelines.archive_settings import ArchiveSettings, ReplaySettings
from kafkaesque.spark.pipelines.blocks import Place, write_table
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import NOW_MS, finish

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000
PARTITIONS = 2


def a_record(number: int) -> Record:
    """Records with and without keys, values and headers, of three days, out of order in time."""
    return Record(
        offset=number,
        timestamp_ms=NOW_MS - number % 3 * DAY_MS - number * 7 % 1_000,
        key=None if number % 4 == 0 else b"\x00k%d" % number,
        value=None if number % 5 == 0 else bytes(range(number % 256)),
        headers=(("h", None), ("h", b""), ("ü", b"\xff%d" % number)) if number % 3 == 0 else (),
    )


def content(topics: Topics, topic: str) -> list[list[Any]]:
    """Return the records of each partition, without their offsets."""
    return [
        [
            (one.key, one.value, one.headers, one.timestamp_ms)
            for batch in topics.admin.batches.fetch(topic, partition, 0).batches
            if not batch.is_control
            for one in read_records(batch)
        ]
        for partition in range(PARTITIONS)
    ]


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_a_replayed_archive_is_identical_byte_by_byte(
    form: str, spark: Any, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create(f"original-{form}", PARTITIONS)
    place = Place(bootstrap=topics.bootstrap, folder=tmp_path / "archive", is_once=True)
    for _ in range(2):  # the second run continues where the first one ended
        for partition in range(PARTITIONS):
            topics.put(name, partition, [a_record(n) for n in range(60 + partition)])
        finish(archive.jobs(spark, place, ArchiveSettings(topic=name, format=form)))
    days = {path.name for path in place.table("records").glob("day=*")}
    assert len(days) >= 3

    again = ReplaySettings(topic=f"again-{form}", archive=str(place.folder), format=form)
    fares = finish(replay.jobs(spark, place, again))
    assert fares[0].rows == 242
    assert content(topics, again.topic) == content(topics, name)


def test_a_repeated_micro_batch_is_in_the_archive_once(spark: Any, tmp_path: Path) -> None:
    rows = spark.sql("select 1 as partition, 5L as offset, date'2026-01-01' as day")
    for batch in (0, 1, 1):
        archive.write_delta(rows, tmp_path / "delta", batch)
        write_table(rows, tmp_path / "parquet", batch, by=["day"])
    assert spark.read.parquet(str(tmp_path / "parquet")).count() == 2
    from deltalake import DeltaTable

    assert DeltaTable(str(tmp_path / "delta")).to_pyarrow_table().num_rows == 2


def test_a_missing_archive_is_named(spark: Any, tmp_path: Path) -> None:
    place = Place(bootstrap="localhost:1", folder=tmp_path)
    with pytest.raises(BadOption, match="no archive is there"):
        finish(replay.jobs(spark, place, ReplaySettings(archive=str(tmp_path / "nothing"))))
    with pytest.raises(BadOption, match="must be parquet or delta"):
        finish(replay.jobs(spark, place, ReplaySettings(format="csv")))
