"""A topic as files: every record with its key, value, headers, timestamp, partition and offset.

A repeated micro-batch replaces what it wrote, so every record is there once.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.pipelines.archive_settings import ArchiveSettings
from kafkaesque.spark.pipelines.blocks import Job, Place, each_batch, read_topic, write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "records"
_DAY = "day"
_FORMATS = ("parquet", "delta")


def jobs(spark: "SparkSession", place: Place, settings: ArchiveSettings) -> list[Job]:
    """Prepare the query; the topic must exist."""
    check_format(settings.format)
    records = read_topic(spark, place, settings.topic, query="archive", headers=True)
    by_day = records.withColumn(_DAY, F.to_date("timestamp"))
    path = place.table(TABLE)

    def write(rows: "DataFrame", batch: int) -> None:
        if settings.format == "delta":
            write_delta(rows, path, batch)
        else:
            write_table(rows, path, batch, by=[_DAY])

    return [each_batch(by_day, place, write, query="archive")]


def check_format(name: str) -> None:
    """Raise BadOption unless this is a format of archives."""
    if name not in _FORMATS:
        raise BadOption(f"format is {name!r}, but must be {' or '.join(_FORMATS)}")


def write_delta(rows: "DataFrame", path: Path, batch: int) -> None:
    """Append a micro-batch to a Delta table, unless the table already has it.

    The rows pass through this process, so a micro-batch must fit into its memory.
    """
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    location, version = str(path), None
    if DeltaTable.is_deltatable(location):
        version = DeltaTable(location).transaction_version(TABLE)
    if version is not None and version >= batch:
        return
    found = rows.toArrow()
    if found.num_rows:
        noted = CommitProperties(app_transactions=[Transaction(TABLE, batch)])
        write_deltalake(
            location, found, mode="append", partition_by=[_DAY], commit_properties=noted
        )
