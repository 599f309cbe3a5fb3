"""Compaction by key: closed segments keep only the last record of each key.

A pass has two parts. It first records the last offset of each key in the part of the log that no
pass has covered yet, then rewrites every segment up to there without superseded records. Batches
that lose all records go. Offsets do not change, so the log gets holes.

Never touched: the active segment and the newest batch of the log (a log's end must not move),
control batches, records without a key. Records of transactions supersede nothing: the record does
not say whether its transaction committed.

A tombstone, a key without a value, marks its key as deleted for a while and is then removed too,
but not before its own pass is over: until then older values of the key may remain.

Each segment is rewritten to a new file, which is synced and then renamed over the old one. A crash
leaves the old segment or the new one. An empty segment is removed, unless the log starts in it.
Small segments are not merged: the number of keys bounds their number.

Nothing here blocks: while a sync is under way, a step only reports that it is waiting.
"""

from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import suppress
from hashlib import blake2b

from msgspec import Struct, field

from kafkaesque.ages import Ages
from kafkaesque.log.disk import File
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.seals import Seal, Sealing
from kafkaesque.log.segment import Segment
from kafkaesque.log.segment_check import is_same
from kafkaesque.log.segment_index import CLEANED_SUFFIX, SegmentIndex
from kafkaesque.log.segments import Segments
from kafkaesque.log.steps import Step, synced, write_index
from kafkaesque.record.build import rebuild_batch
from kafkaesque.record.errors import BatchError
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.types import Offset

SHORT_KEY_BYTES = 32
"""Longer keys are stored as a digest, one byte longer so that it cannot equal a key."""


class CompactionRules(Struct, frozen=True, kw_only=True):
    """A topic's compaction settings."""

    delete_retention_ms: int = 24 * 3600 * 1000
    """Keep tombstones this long, so that slow consumers see the deletion."""

    limits: RecordLimits = field(default_factory=RecordLimits)


def compact(
    segments: Segments, *, below: Offset, ages: Ages | None, rules: CompactionRules
) -> Iterator[Step]:
    """Run one pass over the closed segments that lie wholly before `below`, a slice per step.

    `below` is at most the committed offset and the base of the segment that holds the on-disk
    synced point. Without `ages` every tombstone is kept. Other work on the log may happen between
    steps, and a pass may be abandoned after any step. Raises CorruptLog on a damaged batch,
    DiskFull, DiskFailed.
    """
    return _Pass(segments, below, ages, rules).run()


class _Pass:
    """One pass: the last offsets of keys, and how far it got."""

    def __init__(
        self, segments: Segments, below: Offset, ages: Ages | None, rules: CompactionRules
    ) -> None:
        self._segments = segments
        self._victims = segments.compactable(below)
        self._ages = ages
        self._rules = rules
        self._clean_to = segments.compacted_to
        self._last: dict[bytes, Offset] = {}

    def run(self) -> Iterator[Step]:
        reached = yield from self._remember()
        for segment in self._victims:
            if segment.base >= reached:
                break
            if segment.size == 0:
                yield from self._remove(segment)
            elif (yield from self._is_worthwhile(segment)):
                yield from self._rewrite(segment)
        if self._segments.compacted_to == self._clean_to:  # otherwise the log was reset meanwhile
            self._segments.compacted_to = reached

    def _remember(self) -> Generator[Step, None, Offset]:
        """Record last offsets of keys, starting where the last pass ended; returns how far."""
        reached = self._clean_to
        for segment in self._new_victims():
            for view in self._batches(segment):
                yield Step.WORKED
                if view.end_offset <= self._clean_to:
                    continue
                if len(self._last) >= self._segments.config.compaction_keys_max:
                    return reached
                if not view.is_control and not view.is_transactional:
                    for record in self._records(segment, view):
                        if record.key is not None:
                            self._last[_short(record.key)] = record.offset
                reached = view.end_offset
        return reached

    def _new_victims(self) -> list[Segment]:
        """Return the victims, starting with the one in which the last pass ended."""
        bases = [segment.base for segment in self._victims]
        return self._victims[max(bisect_right(bases, self._clean_to) - 1, 0) :]

    def _is_worthwhile(self, segment: Segment) -> Generator[Step, None, bool]:
        """Return whether the segment would lose a record, to avoid a useless rewrite."""
        for view in self._batches(segment):
            records = self._records(segment, view)
            if len(self._kept(segment, view, records)) < len(records):
                return True
            yield Step.WORKED
        return False

    def _rewrite(self, segment: Segment) -> Iterator[Step]:
        disk = self._segments.disk
        path = segment.path + CLEANED_SUFFIX
        with disk_errors(path):
            with suppress(FileNotFoundError):
                disk.remove(path)  # left by an abandoned pass
            file = disk.create(path)
        try:
            index, seal = yield from self._write(segment, file)
            yield from synced(self._segments, [file], [])
            if file.size() == 0 and not self._segments.is_first(segment):
                yield from self._remove(segment)
            else:
                yield from self._replace(segment, path, index, seal)
        finally:
            file.close()
            with disk_errors(path), suppress(FileNotFoundError):
                disk.remove(path)

    def _replace(
        self, segment: Segment, path: str, index: SegmentIndex, seal: Seal
    ) -> Iterator[Step]:
        """Rename the new file over the old one, then write its indexes.

        A crash leaves either file, so both have a seal before the rename.
        """
        folder = self._segments.folder
        try:
            if self._segments.holds(segment):
                self._segments.hide_index(segment)
                self._segments.seals.expect(seal)
                yield from self._save_seals()
            if self._segments.holds(segment):
                self._segments.replace(segment, path, index, seal)
                yield from synced(self._segments, [], [folder])
            if self._segments.holds(segment) and segment.size:
                yield from write_index(self._segments, segment)
        finally:
            segment.is_index_hidden = False

    def _remove(self, segment: Segment) -> Iterator[Step]:
        """Remove an empty segment: first its indexes, durably, then the segment."""
        folder = self._segments.folder
        try:
            if self._segments.holds(segment) and not self._segments.is_first(segment):
                self._segments.hide_index(segment)
                self._segments.seals.forget([segment.base])
                yield from self._save_seals()
            if self._segments.holds(segment) and not self._segments.is_first(segment):
                self._segments.remove(segment)
                yield from synced(self._segments, [], [folder])
        finally:
            segment.is_index_hidden = False

    def _save_seals(self) -> Iterator[Step]:
        """Make the seals durable, and with them the removal of index files."""
        seals, folder = self._segments.seals, self._segments.folder
        while seals.is_saving:
            yield Step.WAITED
        if seals.is_dirty:
            file = seals.begin_saving()
            is_synced = False
            try:
                yield from synced(self._segments, [file], [])
                is_synced = True
            finally:
                if not is_synced:
                    seals.give_up_saving()
            seals.finish_saving(file)
        yield from synced(self._segments, [], [folder])

    def _write(
        self, segment: Segment, file: File
    ) -> Generator[Step, None, tuple[SegmentIndex, Seal]]:
        """Write the records that the segment keeps; returns the new file's index and seal."""
        index = segment.new_index()
        position = 0
        old, new = Sealing(), Sealing()
        for view in self._batches(segment):
            yield Step.WORKED
            old.note(view.data, view.size)
            records = self._records(segment, view)
            kept = self._kept(segment, view, records)
            if len(kept) == len(records):
                batch: memoryview | bytearray = view.data
            elif kept:
                batch = rebuild_batch(view, kept)
            else:
                continue
            with disk_errors(file.path):
                file.write(position, batch)
            index.note(view.base_offset, BatchView(batch).max_timestamp_ms, position)
            new.note(batch, len(batch))
            position += len(batch)
        self._check_seal(segment, old)
        return index, new.seal(segment.base, self._end_of(segment))

    def _check_seal(self, segment: Segment, read: Sealing) -> None:
        """Raise if the batches do not match the seal: a damaged offset must not be sealed again.

        A segment without a seal gets one.
        """
        if not self._segments.holds(segment):
            return  # it was not read to its end
        seals = self._segments.seals.of(segment.base)
        found = read.seal(segment.base, self._end_of(segment))
        if not seals:
            self._segments.seals.put(found)
        elif not any(is_same(found, seal) for seal in seals):
            reason = "its batches do not match its seal"
            raise CorruptLog(segment.path, 0, reason, offset=segment.base)

    def _end_of(self, segment: Segment) -> Offset:
        return self._segments.end_of(segment) if self._segments.holds(segment) else segment.base

    def _kept(self, segment: Segment, view: BatchView, records: list[Record]) -> list[Record]:
        if view.is_control:
            return records
        return [record for record in records if self._is_kept(segment, record)]

    def _is_kept(self, segment: Segment, record: Record) -> bool:
        if record.key is None:
            return True
        if self._last.get(_short(record.key), record.offset) > record.offset:
            return False
        ages = self._ages
        if record.value is not None or record.offset >= self._clean_to or ages is None:
            return True
        # A timestamp in the future would keep the tombstone for ever.
        is_plausible = 0 <= record.timestamp_ms <= ages.now_ms
        since_ms = record.timestamp_ms if is_plausible else segment.modified_ms
        return ages.of(since_ms) < self._rules.delete_retention_ms

    def _batches(self, segment: Segment) -> Iterator[BatchView]:
        """Yield the segment's batches until the log drops it."""
        batches = segment.batches()
        while self._segments.holds(segment):
            view = next(batches, None)
            if view is None:
                return
            yield view

    def _records(self, segment: Segment, view: BatchView) -> list[Record]:
        try:
            return read_records(view, self._rules.limits)
        except BatchError as error:
            reason = f"batch {view.base_offset}: {error}"
            raise CorruptLog(segment.path, 0, reason, offset=view.base_offset) from error


def _short(key: bytes) -> bytes:
    if len(key) <= SHORT_KEY_BYTES:
        return key
    return blake2b(key, digest_size=SHORT_KEY_BYTES + 1).digest()
