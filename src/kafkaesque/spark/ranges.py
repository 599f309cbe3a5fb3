"""The ranges of offsets that a query reads, divided among tasks and micro-batches."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import EARLIEST, LATEST, NOT_FOUND, Place
from kafkaesque.spark.errors import BadOption, DataLost
from kafkaesque.spark.options import ReadOptions
from kafkaesque.spark.positions import Assigned, Beginning, Matching, Missing, Position, Subscribed
from kafkaesque.types import Offset

Offsets = Mapping[Place, Offset]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """A range of offsets of one partition, with an exclusive end."""

    topic: str
    partition: int
    start: Offset
    end: Offset

    @property
    def size(self) -> int:
        """The number of offsets; there may be fewer records."""
        return self.end - self.start


def places_of(admin: Admin, options: ReadOptions, *, is_newest: bool = False) -> list[Place]:
    """Return the partitions that a query reads now; raises UnknownTopic.

    A broker that lags may not know all of them; `is_newest` avoids it.
    """

    def places(name: str) -> list[Place]:
        return admin.topics.describe(name, is_newest=is_newest).places

    match options.selection:
        case Subscribed(topics=topics):
            return sorted(place for name in topics for place in places(name))
        case Matching(pattern=pattern):
            fits = re.compile(pattern).fullmatch
            listed = admin.topics.list(is_newest=is_newest)
            found = [one for one in listed if fits(one.name) and not one.is_internal]
            return sorted(place for one in found for place in one.places)
        case Assigned(places=wanted):
            there = {place for name in {topic for topic, _ in wanted} for place in places(name)}
            for topic, partition in wanted:
                if (topic, partition) not in there:
                    raise BadOption(
                        f"assign names partition {partition} of topic {topic}, which does not exist"
                    )
            return sorted(wanted)
        case _:
            assert_never(options.selection)


def earliest(admin: Admin, places: Iterable[Place]) -> dict[Place, Offset]:
    """Return the first offset of each partition."""
    return admin.topics.offsets(places, EARLIEST)


def latest(admin: Admin, options: ReadOptions, places: Iterable[Place]) -> dict[Place, Offset]:
    """Return the offset after the last record that the query may read in each partition."""
    return admin.topics.offsets(places, LATEST, is_committed=options.is_committed)


def resolve_start(admin: Admin, options: ReadOptions, places: list[Place]) -> dict[Place, Offset]:
    """Return the offsets at which the options start."""
    position = options.starting
    found = _resolve(admin, options, places, position, "startingOffsets")
    for topic, partition in places:
        if found[topic, partition] != NOT_FOUND:
            continue
        if options.missing is Missing.ERROR:
            raise BadOption(
                f"no record of partition {partition} of topic {topic} is as late as the starting "
                "time; set startingOffsetsByTimestampStrategy to latest to start at the end"
            )
        found |= latest(admin, options, [(topic, partition)])
    return found


def resolve_end(admin: Admin, options: ReadOptions, places: list[Place]) -> dict[Place, Offset]:
    """Return the offsets at which the options end; the end if no record is that late."""
    found = _resolve(admin, options, places, options.ending, "endingOffsets")
    ends = latest(admin, options, places)
    return {place: ends[place] if found[place] == NOT_FOUND else found[place] for place in places}


def _resolve(
    admin: Admin, options: ReadOptions, places: list[Place], position: Position, option: str
) -> dict[Place, Offset]:
    position.check_places(places, option)
    match position.beginning:
        case Beginning.EARLIEST:
            return earliest(admin, places)
        case Beginning.LATEST:
            return latest(admin, options, places)
        case Beginning.TIME:
            return admin.topics.offsets(places, position.time_ms)
        case Beginning.TIMES:
            found: dict[Place, Offset] = {}
            for time_ms in sorted(set(position.places.values())):
                at = [place for place in places if position.places[place] == time_ms]
                found |= admin.topics.offsets(at, time_ms)
            return found
        case Beginning.OFFSETS:
            given = dict(position.places)
            first = [place for place in places if given[place] == EARLIEST]
            last = [place for place in places if given[place] == LATEST]
            return given | earliest(admin, first) | latest(admin, options, last)
        case _:
            assert_never(position.beginning)


def split(ranges: list[OffsetRange], options: ReadOptions) -> list[OffsetRange]:
    """Cut ranges to get about `minPartitions`, none over `maxRecordsPerPartition`."""
    total = sum(one.size for one in ranges)
    parts: list[OffsetRange] = []
    for one in (each for each in ranges if each.size > 0):
        pieces = max(1, round(options.min_partitions * one.size / total))
        if options.records_per_partition_max:
            pieces = max(pieces, -(-one.size // options.records_per_partition_max))
        pieces = min(pieces, one.size)
        cuts = [one.start + one.size * number // pieces for number in range(pieces + 1)]
        parts += (
            OffsetRange(topic=one.topic, partition=one.partition, start=start, end=end)
            for start, end in pairwise(cuts)
        )
    return parts


def admit(starts: Offsets, ends: Offsets, rows_max: int) -> dict[Place, Offset]:
    """Return ends that admit at most `rows_max` offsets, divided by what each partition holds.

    While the budget lasts, each partition with data gets at least one, so that larger ones do not
    starve it.
    """
    waiting = {place: max(ends[place] - starts[place], 0) for place in ends}
    total = sum(waiting.values())
    if total <= rows_max:
        return dict(ends)
    admitted = {place: start for place, start in starts.items() if place in ends}
    left = rows_max
    for place, size in sorted(waiting.items(), key=lambda one: one[1]):
        share = min(size, left, max(1 if size else 0, rows_max * size // total))
        admitted[place] = starts[place] + share
        left -= share
    return admitted


def report_loss(options: ReadOptions, sentence: str) -> None:
    """Raise DataLost, or only log it if the options say so."""
    if options.fail_on_data_loss:
        raise DataLost(f"{sentence}; set failOnDataLoss to false to continue with what is left")
    _log.warning("%s", sentence)
