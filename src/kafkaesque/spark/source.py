"""Batch queries that read: the list of tasks, and the work of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkaesque.spark.clients import admin_of
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.options import ReadOptions
from kafkaesque.spark.ranges import (
    OffsetRange,
    earliest,
    latest,
    places_of,
    report_loss,
    resolve_end,
    resolve_start,
    split,
)

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RangePartition(InputPartition):
    """The range of offsets that one task reads."""

    part: OffsetRange


class BatchReader(DataSourceReader):
    """Reads a fixed set of offsets, determined when the query is planned."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[RangePartition]:
        """Return the ranges to read, one for each task."""
        admin = admin_of(self._options.cluster)
        places = places_of(admin, self._options)
        starts = resolve_start(admin, self._options, places)
        ends = resolve_end(admin, self._options, places)
        first, last = earliest(admin, places), latest(admin, self._options, places)
        ranges = []
        for place in places:
            start, end = starts[place], ends[place]
            where = f"partition {place[1]} of topic {place[0]}"
            if end > last[place]:
                raise BadOption(f"endingOffsets: {where} ends at {last[place]}, before {end}")
            if start > end:
                raise BadOption(f"startingOffsets: {where} would start at {start}, after {end}")
            if start < first[place]:
                report_loss(self._options, f"{where} starts at {first[place]}, not at {start}")
                start = min(first[place], end)
            ranges.append(OffsetRange(topic=place[0], partition=place[1], start=start, end=end))
        return [RangePartition(part) for part in split(ranges, self._options)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Yield the records of one range; Spark calls it once even without ranges."""
        if isinstance(partition, RangePartition):
            # Imported here: planning needs no compiled loops, and importing them takes a second.
            from kafkaesque.spark.range_reader import read_range

            yield from read_range(self._options, partition.part, self._columns)
