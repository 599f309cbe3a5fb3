"""The batches of one partition by offset: contiguous segments; appends go to the last one.

Nothing here is durable on its own: `take_dirty` returns what to sync, and `point` is the end that
is durable after that sync. A caller that records the point has two duties. Before `truncate` cuts
below it, a lower point must be on disk, because a file shorter than its point counts as damaged.
And only segments before the point's may be compacted.

A log may have holes, where a leader had compacted records away before it sent the rest. A new
segment is named after the end of the one before it, even when its first batch lies behind a hole:
so recovery can distinguish a hole from a segment whose end was lost.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, takewhile

from kafkaesque.clock import Clock
from kafkaesque.config import LogConfig
from kafkaesque.errors import DiskFull
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import CorruptLog, OffsetOutOfRange
from kafkaesque.log.offset_index import RELATIVE_MAX
from kafkaesque.log.seals import Seal, Seals
from kafkaesque.log.segment import (
    EMPTY,
    LOG_SUFFIX,
    Segment,
    SegmentInfo,
    SyncedPoint,
    first_run,
    stem_of,
)
from kafkaesque.log.segment_index import SegmentIndex
from kafkaesque.log.segments_recovery import TermAt, discard_segments, recover_segments
from kafkaesque.record.view import peek_span
from kafkaesque.types import Buffer, Offset

__all__ = ["SegmentInfo", "Segments", "SyncedPoint"]


class Segments:
    """One partition's batches; made by `create` for a new log and by `recover` for an existing one.

    `end_offset` is the first offset not written. One thread owns it all.
    """

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: LogConfig,
        clock: Clock,
        segments: Sequence[Segment],
        end_offset: Offset,
        seals: Seals,
    ) -> None:
        assert 0 < config.segment_bytes_max <= RELATIVE_MAX, "positions have 31 bits"
        self.disk = disk
        self.folder = folder
        self.config = config
        self.end_offset = end_offset
        self.compacted_to = segments[0].base
        """No key occurs twice before this offset; kept in memory only, moved by
        `log/compaction.py`.
        """
        self.seals = seals
        """The seals of the closed segments; see `log/seals.py`."""
        self.found: tuple[CorruptLog, ...] = ()
        """The damage that recovery found; each with its first offset."""
        self._saving: File | None = None
        """The seals file that the current round makes durable."""
        self._clock = clock
        self._segments = list(segments)
        self._bases = [segment.base for segment in segments]
        self._active = self._segments[-1]
        self._loaded: OrderedDict[Segment, None] = OrderedDict()
        self._maxima: list[int] | None = None
        self._dirty_files: dict[File, None] = {}
        self._is_active_dirty = False
        self._is_folder_dirty = False
        self._index_sync_at = self._active.size + config.index_sync_bytes

    @classmethod
    def create(
        cls, disk: Disk, folder: str, config: LogConfig, clock: Clock, start_offset: Offset
    ) -> "Segments":
        """Create a log at `start_offset`: a durable folder and a segment still to be synced."""
        with disk_errors(folder):
            disk.make_folder(folder)
        discard_segments(disk, folder, only_empty=True)
        segment = Segment.create(disk, folder, config, start_offset)
        seals = Seals(disk, folder)
        segments = cls(disk, folder, config, clock, [segment], start_offset, seals)
        segments._is_folder_dirty = True
        return segments

    @classmethod
    def recover(  # noqa: PLR0913 - all that its owner knows of the log
        cls,
        disk: Disk,
        folder: str,
        config: LogConfig,
        clock: Clock,
        *,
        start_offset: Offset,
        synced: SyncedPoint | None,
        term_at: TermAt,
        has_holes: bool = True,
    ) -> "Segments":
        """Open a log after a stop or a crash; see `log/segments_recovery.py` for the rules.

        Without `has_holes` a log that ends early is damaged; with it, compaction may be the reason.
        All is durable after the next sync. Raises CorruptLog, changing nothing, when the synced
        part of the synced point's segment is damaged. Other damage is in `found`.
        """
        recovered = recover_segments(
            disk,
            folder,
            config,
            start_offset=start_offset,
            synced=synced,
            term_at=term_at,
            has_holes=has_holes,
        )
        active = recovered.segments[-1]
        # A restart does not make the segment younger; an odd timestamp may roll it once too often.
        active.first_append_ms = min(active.first_timestamp(), clock.now_ms())
        log = cls(
            disk,
            folder,
            config,
            clock,
            recovered.segments,
            recovered.end_offset,
            recovered.seals,
        )
        log.found = recovered.damage
        log.put_back_dirty(recovered.unsynced, recovered.unsynced)
        return log

    @property
    def first_base(self) -> Offset:
        """The base of the oldest segment: the first offset that can be read."""
        return self._bases[0]

    @property
    def bases(self) -> tuple[Offset, ...]:
        """The bases of all segments, oldest first."""
        return tuple(self._bases)

    @property
    def active_base(self) -> Offset:
        """The base of the active segment."""
        return self._active.base

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches, without indexes."""
        return sum(segment.size for segment in self._segments)

    # --- appending -------------------------------------------------------------------------------

    def append(self, *batches: Buffer) -> int:
        """Write stamped batches at the end, or after a hole there.

        Returns how many of the first ones it wrote: those that go with one write. Kept light;
        `bench/append.py` measures it. After DiskFull or DiskFailed the log is unchanged.
        """
        active, now_ms = self._active, self._clock.now_ms()
        base, end, _ = span = peek_span(batches[0])
        assert base >= self.end_offset, "a batch never replaces another: truncate comes first"
        if len(batches) > 1:
            batches = first_run(batches, self.config.segment_bytes_max - active.size)
            end = peek_span(batches[-1])[1]
        size = sum(map(len, batches))
        if active.size and self._must_roll(active, size, end, now_ms):
            active = self._roll()
        active.append(batches, now_ms, span)
        self.end_offset = end
        self._is_active_dirty = True
        return len(batches)

    def roll(self) -> None:
        """Close the active segment and start another, unless it is empty; raises DiskFull."""
        if self._active.size:
            self._roll()

    @property
    def is_old(self) -> bool:
        """Whether the next append would close the active segment because of its age."""
        active = self._active
        age_ms = self._clock.now_ms() - active.first_append_ms
        return active.size > 0 and age_ms > self.config.segment_age_ms_max

    @property
    def has_rolled(self) -> bool:
        """Whether a closed segment still has to be synced."""
        return bool(self._dirty_files)

    def _must_roll(self, active: Segment, size: int, end: Offset, now_ms: int) -> bool:
        return (
            active.size + size > self.config.segment_bytes_max
            or end - active.base > RELATIVE_MAX
            or now_ms - active.first_append_ms > self.config.segment_age_ms_max
        )

    def _roll(self) -> Segment:
        """Close the active segment and open the next; an error leaves everything unchanged."""
        old = self._active
        seal = old.seal()
        index = old.index
        index.finish()
        index_files = index.write()
        new = Segment.create(self.disk, self.folder, self.config, old.end)
        old.is_closed = True
        old.forget_tail()
        if self._is_active_dirty:
            self._dirty_files[old.file] = None
        for file in index_files:
            self._dirty_files[file] = None
        self._is_folder_dirty = True
        self._segments.append(new)
        self._bases.append(new.base)
        self._activate(new)
        self._touch(old)
        if seal is not None:
            self.seals.put(seal)
        return new

    def _activate(self, segment: Segment) -> None:
        segment.is_closed = False
        self._active = segment
        self._is_active_dirty = False
        self._index_sync_at = segment.size + self.config.index_sync_bytes
        self._maxima = None
        self._loaded.pop(segment, None)

    # --- reading ---------------------------------------------------------------------------------

    def read(self, offset: Offset, bytes_max: int, *, first_always: bool = True) -> memoryview:
        """Return whole batches of one segment, from the one that covers or follows `offset`.

        As many as `bytes_max` allows; with `first_always` the first, however large. None at the
        end.
        """
        self._check_offset(offset)
        bytes_max = min(bytes_max, self.config.read_bytes_max)
        for segment in self._segments_from(offset):
            limit = self.end_of(segment) if segment.is_closed else None
            data = segment.read(offset, bytes_max, first_always=first_always, limit=limit)
            if data is not None:
                return data
        return EMPTY

    def tail(self, offset: Offset) -> memoryview:
        """Return the last batch from memory, if it starts at `offset` and is small; else nothing.

        For consumers at the end of the log, see `bench/latency.py`. Peers get the data from the
        disk, so that damage shows.
        """
        return self._active.tail(offset)

    def bytes_from(self, offset: Offset) -> int:
        """Estimate the bytes from `offset` to the end of its segment; reads none.

        Never too few; too many by up to the distance between two index entries.
        """
        self._check_offset(offset)
        number = bisect_right(self._bases, offset) - 1
        return self._touch(self._segments[number]).bytes_from(offset)

    def bytes_behind(self, offset: Offset) -> int:
        """Estimate the bytes from `offset` to the end; reads none.

        Too many by up to the distance between two index entries.
        """
        later = self._segments[bisect_right(self._bases, offset) :]
        return self.bytes_from(offset) + sum(segment.size for segment in later)

    def batch_base(self, offset: Offset) -> Offset:
        """Return the base offset of the batch that covers or follows `offset`; else the end."""
        self._check_offset(offset)
        for segment in self._segments_from(offset):
            base = segment.batch_base(offset)
            if base is not None:
                return base
        return self.end_offset

    def find_time(self, timestamp_ms: int, first: Offset = 0) -> memoryview | None:
        """Return the first batch with a timestamp not earlier than this; None if there is none.

        Batches that end before the offset `first` are skipped.
        """
        number = bisect_left(self._closed_maxima(), timestamp_ms)
        number = max(number, bisect_right(self._bases, first) - 1)
        for segment in self._segments[number:]:
            # Compaction may have removed the record with the greatest timestamp: then continue.
            if segment.newest()[0] >= timestamp_ms or segment.damage is not None:
                data = self._touch(segment).find_time(timestamp_ms, first)
                if data is not None:
                    return data
        return None

    def newest_time(self, first: Offset = 0) -> memoryview | None:
        """Return the first batch with the greatest timestamp; None if there is no batch.

        Batches that end before the offset `first` do not count.
        """
        if self.size_bytes == 0:
            return None
        number = max(bisect_right(self._bases, first) - 1, 0)
        for segment in self._segments[number:]:
            if segment.damage is not None:
                raise CorruptLog(segment.path, segment.size, segment.damage, offset=segment.base)
        newest = [self._newest(segment, first) for segment in self._segments[number:]]
        found = max(range(len(newest)), key=lambda place: newest[place][0])
        data = self._touch(self._segments[number + found]).read(newest[found][1], 1)
        return data if data else self.read(max(self.first_base, first), 1)

    def _newest(self, segment: Segment, first: Offset) -> tuple[int, Offset]:
        """Return a segment's greatest timestamp and where it is, at or after `first`."""
        newest = segment.newest()
        return newest if newest[1] >= first else self._touch(segment).newest_from(first)

    def each_info(self) -> Iterator[SegmentInfo]:
        """Yield each segment's info, oldest first; the first time from disk."""
        for number in range(len(self._segments)):
            yield self._info(number)

    def active_info(self) -> SegmentInfo:
        """Return the active segment's info."""
        return self._info(len(self._segments) - 1)

    def _info(self, number: int) -> SegmentInfo:
        segment = self._segments[number]
        is_last = number + 1 == len(self._bases)
        return SegmentInfo(
            base=segment.base,
            end=self.end_offset if is_last else self._bases[number + 1],
            bytes=segment.size,
            max_timestamp_ms=segment.newest()[0],
            modified_ms=segment.modified_ms,
            is_active=is_last,
        )

    def span(self, offset: Offset) -> tuple[Segment, Offset]:
        """Return the segment of `offset`, and the offset at which the next one starts."""
        self._check_offset(offset)
        number = bisect_right(self._bases, offset)
        end = self._bases[number] if number < len(self._bases) else self.end_offset
        return self._segments[number - 1], end

    def _check_offset(self, offset: Offset) -> None:
        if not self._bases[0] <= offset <= self.end_offset:
            raise OffsetOutOfRange(offset, self._bases[0], self.end_offset)

    def _segments_from(self, offset: Offset) -> Iterator[Segment]:
        """Yield the segment of `offset` and those after it: a hole may end there."""
        for number in range(bisect_right(self._bases, offset) - 1, len(self._segments)):
            yield self._touch(self._segments[number])

    def _closed_maxima(self) -> list[int]:
        """For each closed segment, the greatest timestamp up to and including it."""
        if self._maxima is None:
            closed = self._segments[:-1]
            self._maxima = list(accumulate((segment.newest()[0] for segment in closed), max))
        return self._maxima

    def _touch(self, segment: Segment) -> Segment:
        """Mark this closed segment as used; unload the index of the one unused for longest."""
        if segment.is_closed:
            self._loaded[segment] = None
            self._loaded.move_to_end(segment)
            if len(self._loaded) > self.config.indexes_loaded_max:
                oldest = next(iter(self._loaded))
                if self._dirty_files.keys().isdisjoint(oldest.files):
                    del self._loaded[oldest]
                    oldest.unload_index()
        return segment

    # --- removing --------------------------------------------------------------------------------

    def truncate(self, offset: Offset, *, has_holes: bool = True) -> None:
        """Cut off everything from `offset` onwards, which lies between batches.

        Raises CorruptLog, changing nothing, if the batches before it are damaged. Segments after
        the cut are gone for good on return. The cut itself is durable after the next sync: had it
        come first, a crash could leave old data behind a gap.
        """
        self._check_offset(offset)
        if offset == self.end_offset:
            return
        number = bisect_right(self._bases, offset) - 1
        segment = self._touch(self._segments[number])
        segment.boundary(offset, has_holes=has_holes)  # find damage before removing anything
        later = self._segments[number + 1 :]
        if later:
            # Before a file stops matching its seal, or is gone.
            self._forget_now(self.seals.bases_from(segment.base))
            self._remove(later)
            del self._segments[number + 1 :], self._bases[number + 1 :]
            with disk_errors(self.folder):
                self.disk.sync_now([], [self.folder])
            self._activate(segment)
        for file in segment.cut(offset):
            self._dirty_files[file] = None
        self.end_offset = offset

    def drop_before(self, offset: Offset) -> int:
        """Remove the closed segments that end at or before this offset; returns bytes freed."""
        count = min(bisect_right(self._bases, offset), len(self._segments)) - 1
        if count <= 0:
            return 0
        dropped = self._segments[:count]
        self._remove(dropped)
        self.seals.forget([segment.base for segment in dropped])
        del self._segments[:count], self._bases[:count]
        self._maxima = None
        self._is_folder_dirty = True
        return sum(segment.size for segment in dropped)

    def has_before(self, offset: Offset) -> bool:
        """Return whether a closed segment holds only offsets before this."""
        return len(self._bases) > 1 and self._bases[1] <= offset

    def reset(self, offset: Offset) -> None:
        """Remove everything and restart at `offset`; durable except for the new, empty segment."""
        self._give_up_saving()
        self.seals.remove_file()
        self.seals = Seals(self.disk, self.folder)
        self._remove(self._segments)
        with disk_errors(self.folder):
            self.disk.sync_now([], [self.folder])
        segment = Segment.create(self.disk, self.folder, self.config, offset)
        self._segments = [segment]
        self._bases = [offset]
        self._activate(segment)
        self._is_folder_dirty = True
        self.end_offset = offset
        self.compacted_to = offset

    def _remove(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self._loaded.pop(segment, None)
            for file in segment.files:
                self._dirty_files.pop(file, None)
            segment.remove()

    # --- seals -----------------------------------------------------------------------------------

    def closed(self) -> list[Segment]:
        """Return the closed segments, oldest first."""
        return self._segments[:-1]

    def end_of(self, segment: Segment) -> Offset:
        """Return the offset at which a closed segment's successor starts."""
        return self._bases[bisect_right(self._bases, segment.base)]

    def next_base(self, offset: Offset) -> Offset:
        """Return where the segment after that of `offset` starts; the log's end if none does."""
        number = bisect_right(self._bases, offset)
        return self._bases[number] if number < len(self._bases) else self.end_offset

    def doubted(self, offset: Offset) -> tuple[Offset, Offset] | None:
        """Return the offsets [base, end) of the segment of `offset`, if known to be damaged."""
        segment = self._segments[max(bisect_right(self._bases, offset) - 1, 0)]
        return None if segment.damage is None else (segment.base, self.end_of(segment))

    def doubt(self, offset: Offset, reason: str) -> None:
        """Stop serving the closed segment of `offset`: reads would not notice its damage."""
        segment = self._segments[bisect_right(self._bases, offset) - 1]
        if segment.is_closed and segment.damage is None:
            self._loaded.pop(segment, None)
            for file in segment.files:
                self._dirty_files.pop(file, None)
            segment.doubt(0, reason)
            self._maxima = None

    def _forget_now(self, bases: Sequence[Offset]) -> None:
        """Forget the seals of these segments, durably."""
        self._give_up_saving()
        self.seals.forget(bases)
        if self.seals.is_dirty:
            self.seals.save_now()

    def _give_up_saving(self) -> None:
        if self._saving is not None:
            self._dirty_files.pop(self._saving, None)
            self._saving = None
        self.seals.give_up_saving()

    # --- compacting ------------------------------------------------------------------------------

    def compactable(self, below: Offset) -> list[Segment]:
        """Return the closed segments wholly before `below`, without the log's newest batch.

        Segments after a damaged one must wait.
        """
        newest = max((s.base for s in self._segments if s.size), default=self.first_base)
        # A damaged segment may hold older values of keys: tombstones after it must stay.
        sound = takewhile(lambda segment: segment.damage is None, self._segments)
        closed = zip(sound, self._bases[1:], strict=False)
        return [segment for segment, end in closed if end <= below and segment.base < newest]

    def bytes_to_compact(self, below: Offset) -> tuple[int, int]:
        """Return how many bytes of `compactable` no pass has covered yet, and how many one has."""
        dirty = clean = 0
        for segment in self.compactable(below):
            if self.end_of(segment) > self.compacted_to:
                dirty += segment.size
            else:
                clean += segment.size
        return dirty, clean

    def holds(self, segment: Segment) -> bool:
        """Return whether this is still one of the closed segments."""
        number = bisect_left(self._bases, segment.base)
        is_there = number < len(self._segments) and self._segments[number] is segment
        return is_there and segment.is_closed

    def hide_index(self, segment: Segment) -> None:
        """Remove the index files of a closed segment whose file is about to change."""
        assert self.holds(segment)
        for file in self._touch(segment).files:
            self._dirty_files.pop(file, None)
        segment.hide_index()

    def replace(
        self, segment: Segment, path: str, index: SegmentIndex, seal: Seal | None = None
    ) -> None:
        """Replace a closed segment's file with the synced file at `path`.

        Its seal is among those expected, durably; without one, the next full read seals the file.
        """
        assert self.holds(segment)
        if seal is None:
            self._forget_now([segment.base])
        segment.take_file(path, index)
        if seal is not None:
            self.seals.put(seal)
        self._maxima = None
        self._touch(segment)

    def put_in(self, base: Offset, path: str, index: SegmentIndex) -> Segment:
        """Make the synced file at `path` the closed segment at `base`, of which there is none."""
        number = bisect_left(self._bases, base)
        assert 0 < number < len(self._bases) and self._bases[number] > base, "between two others"
        with disk_errors(path):
            self.disk.rename(path, stem_of(self.folder, base) + LOG_SUFFIX)
        segment = Segment.open(self.disk, self.folder, self.config, base)
        segment.is_closed = True
        segment.take_index(index)
        self._segments.insert(number, segment)
        self._bases.insert(number, base)
        self._maxima = None
        self._touch(segment)
        return segment

    def is_first(self, segment: Segment) -> bool:
        """Return whether the log starts in this segment; recovery needs it to find the start."""
        return self._segments[0] is segment

    def remove(self, segment: Segment) -> None:
        """Remove an empty closed segment; the one before it takes over its offsets."""
        assert self.holds(segment) and segment.is_index_hidden and not self.is_first(segment)
        if self.seals.of(segment.base):
            self._forget_now([segment.base])
        number = bisect_left(self._bases, segment.base)
        self._remove([segment])
        del self._segments[number], self._bases[number]
        self._maxima = None

    # --- syncing ---------------------------------------------------------------------------------

    def take_dirty(self) -> tuple[list[File], list[str]]:
        """Return the files and folders whose sync makes everything up to `point` durable."""
        if self._active.size >= self._index_sync_at:
            self._index_sync_at = self._active.size + self.config.index_sync_bytes
            with suppress(DiskFull):  # entries stay in memory, and recovery can do without
                for file in self._active.index.write():
                    self._dirty_files[file] = None
                self._is_folder_dirty = True
        if self._is_active_dirty:
            self._dirty_files[self._active.file] = None
        if self.seals.is_dirty and not self.seals.is_saving:
            with suppress(DiskFull):  # a missing seal is made again
                self._saving = self.seals.begin_saving()
        if self._saving is not None:  # also one of a round that a stop does not wait for
            self._dirty_files[self._saving] = None
        files = list(self._dirty_files)
        folders = [self.folder] if self._is_folder_dirty else []
        self._dirty_files.clear()
        self._is_active_dirty = False
        self._is_folder_dirty = False
        return files, folders

    def synced(self) -> None:
        """Handle a finished sync of what `take_dirty` returned."""
        file, self._saving = self._saving, None
        if file is not None and self.seals.finish_saving(file):
            self._is_folder_dirty = True

    @property
    def is_dirty(self) -> bool:
        """Whether the active segment has unsynced batches."""
        return self._is_active_dirty or self._active.file in self._dirty_files

    def put_back_dirty(self, files: Sequence[File], folders: Sequence[object]) -> None:
        """Take back what `take_dirty` returned if it was not synced."""
        self._dirty_files.update(dict.fromkeys(files))
        self._is_folder_dirty = self._is_folder_dirty or bool(folders)

    def files_from(self, base: Offset) -> list[File]:
        """Return the open files of the segments at and after `base`."""
        return [f for segment in self._segments if segment.base >= base for f in segment.files]

    def skip_to(self, offset: Offset) -> None:
        """Move the log's end to `offset`, after a hole and without a batch; `point` follows."""
        assert offset >= self.end_offset
        self._active.end = self.end_offset = offset

    def point(self) -> SyncedPoint:
        """Return the current end."""
        active, end = self._active, self.end_offset
        return SyncedPoint(
            segment_base=active.base,
            position=active.size,
            end_offset=end,
            checksum=active.checksum,
        )

    def point_at(self, offset: Offset, *, has_holes: bool = True) -> SyncedPoint:
        """Return what `point` would be if the log ended at `offset`, which lies between batches."""
        self._check_offset(offset)
        segment = self._touch(self._segments[bisect_right(self._bases, offset) - 1])
        position = segment.boundary(offset, has_holes=has_holes)
        return SyncedPoint(segment_base=segment.base, position=position, end_offset=offset)

    def close(self, *, syncs: bool = True) -> None:
        """Close the files; a clean stop first syncs everything, indexes too."""
        if syncs:
            self._index_sync_at = self._active.size
            files, _ = self.take_dirty()
            with disk_errors(self.folder):
                self.disk.sync_now(files, [self.folder])
                self.synced()
                if self._is_folder_dirty:
                    self.disk.sync_now([], [self.folder])
        self._give_up_saving()
        for segment in self._segments:
            segment.close()
