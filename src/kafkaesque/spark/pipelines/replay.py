"""Writes an archive back to a topic, with partitions, order and timestamps kept."""

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.client.admin import Admin
from kafkaesque.errors import TopicExists
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.pipelines.archive import TABLE, check_format
from kafkaesque.spark.pipelines.archive_settings import ReplaySettings
from kafkaesque.spark.pipelines.blocks import Done, Job, Place, write_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEPT = ("key", "value", "headers", "partition", "timestamp")
_FOR_EVER = {"retention.ms": "-1"}
"""Otherwise records with old timestamps would be deleted at once."""


def jobs(spark: "SparkSession", place: Place, settings: ReplaySettings) -> list[Job]:
    """Prepare the one batch query."""

    def replay() -> Done:
        records = archived(spark, settings)
        found = records.agg(F.max("partition").alias("last"), F.count("*").alias("count")).first()
        assert found is not None, "an aggregate has one row"
        if not found["count"]:
            return Done(name="replay", rows=0)
        _create(place.bootstrap, settings.topic, found["last"] + 1)
        # One task handles a whole partition, so that its order is that of the archive.
        ordered = records.repartition("partition").sortWithinPartitions("partition", "offset")
        write_topic(ordered.select(*_KEPT), place, settings.topic, {"keepTimestamps": "true"})
        return Done(name="replay", rows=found["count"])

    return [replay]


def archived(spark: "SparkSession", settings: ReplaySettings) -> "DataFrame":
    """Return the records of an archive; raises BadOption if there is none."""
    check_format(settings.format)
    path = Path(settings.archive).absolute() / "tables" / TABLE
    if not path.is_dir():
        raise BadOption(f"archive is {settings.archive!r}, but no archive is there")
    if settings.format == "parquet":
        return spark.read.parquet(str(path))
    from deltalake import DeltaTable

    return spark.read.parquet(*DeltaTable(str(path)).file_uris())


def _create(bootstrap: str, topic: str, partitions: int) -> None:
    with Admin(bootstrap) as admin:
        try:
            admin.topics.create(topic, partitions=partitions, settings=_FOR_EVER)
        except TopicExists:
            there = len(admin.topics.describe(topic).partitions)
            if there < partitions:
                raise BadOption(
                    f"topic {topic} has {there} partitions, but the archive {partitions}"
                ) from None
