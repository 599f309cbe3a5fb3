"""Streaming queries that read: micro-batches of offsets that only move forward.

Spark asks for the first offset more than once and keeps only the last result, and it does not
record where batch 0 starts. So the first offset carries an *anchor*: the first batch goes from the
anchored offset to the same one without anchor, is empty, and makes the start durable. Spark also
accepts offsets that go back, so we must detect lost records ourselves.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kafkaesque.client.topics import Place
from kafkaesque.errors import KafkaesqueError, UnknownTopic
from kafkaesque.spark.clients import admin_of
from kafkaesque.spark.options import ReadOptions
from kafkaesque.spark.ranges import (
    OffsetRange,
    admit,
    earliest,
    latest,
    places_of,
    report_loss,
    resolve_start,
    split,
)
from kafkaesque.spark.second_look import look_again
from kafkaesque.types import Offset

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_BUNDLE_OFFSETS_MAX = 5_000
"""A micro-batch up to this size is one task: starting another takes longer than reading it."""

ANCHOR = ":anchor"
"""Marks the very first offset; no topic can have this name."""


@dataclass
class RangesPartition(InputPartition):
    """The ranges of offsets that one task reads, one after another."""

    parts: tuple[OffsetRange, ...]


def offsets_to_json(offsets: Mapping[Place, Offset], *, is_anchor: bool = False) -> dict[str, Any]:
    """Return offsets as stored in a checkpoint: as Spark's own connector does, and sorted."""
    found: dict[str, Any] = {ANCHOR: 1} if is_anchor else {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def offsets_from_json(found: Mapping[str, Any]) -> dict[Place, Offset]:
    """Return the offsets of a checkpoint, without the anchor."""
    return {
        (topic, int(partition)): offset
        for topic, partitions in found.items()
        if topic != ANCHOR
        for partition, offset in partitions.items()
    }


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches in the driver and reads them in tasks.

    Its state exists only in the driver's process: the copies in tasks have none.
    """

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._initial: dict[str, Any] | None = None
        self._target: dict[Place, Offset] | None = None
        self._mirrored: dict[Place, Offset] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where a query without a checkpoint starts; the same on every call."""
        if self._initial is None:
            admin = admin_of(self._options.cluster)
            places = places_of(admin, self._options)
            starts = resolve_start(admin, self._options, places)
            self._initial = offsets_to_json(starts, is_anchor=True)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a micro-batch."""
        rows_max = self._options.offsets_per_trigger_max
        return ReadMaxRows(rows_max) if rows_max else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Determine where the query will end."""
        self._target = self._latest({})

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return where the next micro-batch ends; never before `start`."""
        starts = offsets_from_json(start)
        if ANCHOR in start:
            return offsets_to_json(starts)
        self._mirror(starts)
        ends = self._latest(starts) if self._target is None else self._settled(starts)
        starts |= self._new_starts(ends.keys() - starts.keys())
        for place, at in sorted(starts.items()):
            if place not in ends:
                self._lost(place, f"no longer exists, but was read up to offset {at}")
            elif ends[place] < at:
                self._lost(place, f"ends at {ends[place]}, but was read up to offset {at}")
            ends[place] = max(at, ends.get(place, at))
        if isinstance(limit, ReadMaxRows):
            ends = admit(starts, ends, limit.max_rows)
        return offsets_to_json(ends)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the partitions end, for the lag in Spark's progress reports."""
        return offsets_to_json(self._latest({}))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[RangesPartition]:
        """Return the ranges of one micro-batch; partitions that `start` lacks are new."""
        if ANCHOR in start:
            return []
        starts, ends = offsets_from_json(start), offsets_from_json(end)
        admin = admin_of(self._options.cluster)
        wanted = [place for place, at in ends.items() if at > starts.get(place, 0)]
        first = earliest(admin, wanted)
        ranges = []
        for place in wanted:
            begin = starts.get(place, 0)
            if first[place] > begin:
                self._lost(place, f"starts at {first[place]}, but offset {begin} must be read")
            begin = min(max(begin, first[place]), ends[place])
            ranges.append(
                OffsetRange(topic=place[0], partition=place[1], start=begin, end=ends[place])
            )
        parts = split(ranges, self._options)
        is_split = self._options.min_partitions or self._options.records_per_partition_max
        if parts and not is_split and sum(one.size for one in parts) <= _BUNDLE_OFFSETS_MAX:
            return [RangesPartition(tuple(parts))]
        return [RangesPartition((part,)) for part in parts]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Yield the records of one task's ranges."""
        if isinstance(partition, RangesPartition):
            # Imported here: planning needs no compiled loops, and importing them takes a second.
            from kafkaesque.spark.range_reader import read_range

            for part in partition.parts:
                yield from read_range(self._options, part, self._columns)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the checkpoint counts, and Spark calls this a batch late."""

    def _mirror(self, done: dict[Place, Offset]) -> None:
        """Commit what is done to the group; Spark plans a micro-batch when the last one is done.

        The query goes on if this fails: it never resumes from the group.
        """
        if self._options.group is None or done == self._mirrored:
            return
        try:
            admin_of(self._options.cluster).groups.commit(self._options.group, done)
        except KafkaesqueError as error:
            _log.warning("commit to group %s failed: %s", self._options.group, error)
        else:
            self._mirrored = dict(done)

    def _latest(self, starts: Mapping[Place, Offset]) -> dict[Place, Offset]:
        """Return where the partitions end; looks again if that is before `starts`."""
        admin = admin_of(self._options.cluster)

        def look(is_newest: bool) -> dict[Place, Offset]:  # noqa: FBT001
            places = places_of(admin, self._options, is_newest=is_newest)
            return latest(admin, self._options, places)

        try:
            if not self._options.fail_on_data_loss:
                return look(is_newest=False)
            return look_again(look, lambda ends: _holds(ends, starts))
        except UnknownTopic as error:
            report_loss(self._options, str(error))
            return {}

    def _settled(self, starts: Mapping[Place, Offset]) -> dict[Place, Offset]:
        """Return where the query will end; corrected if a lagging broker determined it."""
        assert self._target is not None
        if self._options.fail_on_data_loss and not _holds(self._target, starts):
            self._target = self._latest(starts)
        return dict(self._target)

    def _new_starts(self, places: set[Place]) -> dict[Place, Offset]:
        """Return the starts of partitions that were added meanwhile: all their records are new."""
        return dict.fromkeys(sorted(places), 0)

    def _lost(self, place: Place, what: str) -> None:
        report_loss(self._options, f"partition {place[1]} of topic {place[0]} {what}")


def _holds(ends: Mapping[Place, Offset], starts: Mapping[Place, Offset]) -> bool:
    return all(place in ends and ends[place] >= at for place, at in starts.items())
