"""Tables that are rewritten when a micro-batch changes them, never in place.

A micro-batch reads the newest version before its own and writes its own; a repetition does the
same. The folder must be in the driver's own file system.
"""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import LATEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafkaesque.spark.pipelines.blocks import Place

_KEPT = 3
"""Versions kept: the newest, the one that it was made from, and one for current readers."""
_WRITTEN = "_SUCCESS"
_OFFSETS = "_offsets.json"


class Versions:
    """The versions of one table, by the number of the micro-batch that wrote them."""

    def __init__(self, spark: "SparkSession", path: Path) -> None:
        self._spark = spark
        self._path = path

    def before(self, batch: int) -> Path | None:
        """Return the newest version that an earlier micro-batch wrote."""
        return next((path for number, path in self._all() if number < batch), None)

    def newest(self) -> "DataFrame":
        """Return the current table; there must be one."""
        return self._spark.read.parquet(str(self._all()[0][1]))

    def read(self, path: Path | None, schema: str) -> "DataFrame":
        """Return a version, or an empty table."""
        if path is None:
            return self._spark.createDataFrame([], schema)
        return self._spark.read.schema(schema).parquet(str(path))

    def write(self, frame: "DataFrame", batch: int) -> Path:
        """Write the version of a micro-batch, and remove those that are no longer needed."""
        path = self._path / f"version={batch}"
        frame.write.mode("overwrite").parquet(str(path))
        for _, old in self._all()[_KEPT:]:
            shutil.rmtree(old)
        return path

    def _all(self) -> list[tuple[int, Path]]:
        """Return the complete versions, newest first."""
        found = [
            (int(path.name.partition("=")[2]), path)
            for path in self._path.glob("version=*")
            if (path / _WRITTEN).exists()
        ]
        return sorted(found, reverse=True)


class TopicTable:
    """A compacted topic kept as a table: the last value of each key."""

    def __init__(self, spark: "SparkSession", place: "Place", topic: str) -> None:
        self._spark = spark
        self._place = place
        self._topic = topic
        self._versions = Versions(spark, place.table(topic))

    def refreshed(self, batch: int) -> "DataFrame":
        """Return the topic's current keys and values; a null value removed its key."""
        from pyspark.sql import functions as F  # noqa: N812 - the usual name

        from kafkaesque.spark.pipelines.blocks import read_whole

        before = self._versions.before(batch)
        known: dict[str, int] = (
            {} if before is None else json.loads((before / _OFFSETS).read_text())
        )
        ends = self._ends()
        old = self._versions.read(before, "key binary, value binary")
        if ends == known:
            return old
        starts = {partition: known.get(partition, 0) for partition in ends}
        options = {
            "startingOffsets": json.dumps({self._topic: starts}),
            "endingOffsets": json.dumps({self._topic: ends}),
            "failOnDataLoss": "false",  # compaction removes all but the last of a key
        }
        changes = read_whole(self._spark, self._place, self._topic, options)
        newest = changes.groupBy("key").agg(F.max_by(F.struct("value"), "offset").alias("last"))
        newest = newest.select("key", "last.value").persist()
        kept = old.join(newest, "key", "left_anti")
        path = self._versions.write(kept.unionByName(newest.where("value is not null")), batch)
        newest.unpersist()
        (path / _OFFSETS).write_text(json.dumps(ends))
        return self._spark.read.parquet(str(path))

    def _ends(self) -> dict[str, int]:
        with Admin(self._place.bootstrap) as admin:
            places = admin.topics.describe(self._topic).places
            found = admin.topics.offsets(places, LATEST)
        return {str(partition): offset for (_, partition), offset in sorted(found.items())}
