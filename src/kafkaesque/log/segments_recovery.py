"""Opening a log's segments after a stop or a crash.

Data before the synced point was durable once, so anything wrong there is damage. Damage in the
synced point's own segment leaves a log without a known end: nothing is changed and CorruptLog is
raised. Segments before that are compared with their seals (`log/known_segments.py`), and the log is
opened without their lost parts. Data after the point, the *tail*, may be torn: it is good up to the
first batch that is incomplete, corrupt, out of order or not of its offset's term, and is cut there.

In the tail a file may have holes between its batches, because a leader may send a log that it has
compacted. Between two files it may not: a hole there is a file that lost its end. Before the synced
point compaction leaves holes anywhere.

Nothing is removed before everything has been checked. Interrupted recovery can be repeated: each
step leaves less to do.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from kafkaesque.config import LogConfig
from kafkaesque.errors import DiskFull
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import CorruptLog, ForeignFile
from kafkaesque.log.known_segments import KnownSegments, TermAt
from kafkaesque.log.seals import STAMP_BYTES, Seals, remove_seals
from kafkaesque.log.segment import (
    LOG_SUFFIX,
    MENDED_SUFFIX,
    SEGMENT_NAME,
    Segment,
    SyncedPoint,
    remove_files,
    stem_of,
)
from kafkaesque.log.window import SCAN_BYTES, BadBatch, UnreadableBatch, Window
from kafkaesque.record.crc import crc32c
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import BatchView
from kafkaesque.types import Offset

__all__ = ["Recovered", "TermAt", "discard_segments", "recover_segments"]


class Recovered(Struct, frozen=True, kw_only=True):
    """A log's segments, oldest first, at least one, and other results."""

    segments: list[Segment]
    end_offset: Offset
    unsynced: list[File]
    """Files to sync, together with the folder, before anything is built on their content."""

    seals: Seals
    damage: tuple[CorruptLog, ...]


class _Found(Struct, kw_only=True):
    """The names in a log's folder that belong to the log."""

    logs: list[Offset] = field(default_factory=list)
    indexes: set[Offset] = field(default_factory=set)
    unfinished: list[str] = field(default_factory=list)


def recover_segments(
    disk: Disk,
    folder: str,
    config: LogConfig,
    *,
    start_offset: Offset,
    synced: SyncedPoint | None,
    term_at: TermAt,
    has_holes: bool,
) -> Recovered:
    """Open a log; one sync makes the rest durable, for all logs of a node."""
    with disk_errors(folder):
        disk.make_folder(folder)
        finish_swaps(disk, folder)
        found = _look(disk.list(folder))
    seals = Seals.load(disk, folder)
    first = bisect_right(found.logs, start_offset) - 1
    if synced is not None and _is_void(synced, start_offset, found.logs, first):
        synced = None
    known = KnownSegments(disk, folder, config, seals, term_at, has_holes=has_holes)
    if synced is not None:
        kept = known.kept(found.logs, found.indexes, synced, start_offset)
        durable = [base for base in kept if base <= synced.segment_base]
    else:
        # A log without its first segment has lost everything.
        kept = found.logs[max(first, 0) :]
        durable = kept[:1] if first >= 0 else []
    opened: list[Segment] = []
    tail: list[Segment] = []
    end_offset = start_offset
    if durable:
        tail = [Segment.open(disk, folder, config, durable[-1])]
        try:
            end_offset = _scan_first(tail[0], synced, term_at, has_holes=has_holes)
        except CorruptLog:
            tail[0].close()
            raise
        opened = known.open(durable)
        _scan_later(disk, folder, config, kept[len(durable) :], tail, term_at)
        end_offset = max(end_offset, tail[-1].end)
    segments = [*opened, *tail]
    if not segments or end_offset < start_offset:
        for segment in segments:
            segment.close()
        segments, end_offset = [], start_offset
    _tidy(disk, folder, found, {segment.base for segment in segments} | known.strangers)
    if not segments:
        segments = tail = [Segment.create(disk, folder, config, start_offset)]
        synced = None
    for segment in segments[:-1]:
        segment.is_closed = True
    known.seal_again(segments, tail)
    return Recovered(
        segments=segments,
        end_offset=end_offset,
        unsynced=_settle(disk, folder, tail, synced),
        seals=seals,
        damage=tuple(known.damage),
    )


def discard_segments(disk: Disk, folder: str, *, only_empty: bool) -> None:
    """Remove the segments in a folder, durably.

    With `only_empty` it refuses to remove data, raising ForeignFile: such data belongs to a log
    that this node does not know, so it must not be deleted. Empty files are left from an
    interrupted creation.
    """
    with disk_errors(folder):
        found = _look(disk.list(folder))
        for base in found.logs if only_empty else []:
            path = stem_of(folder, base) + LOG_SUFFIX
            file = disk.open(path)
            size = file.size()
            file.close()
            if size:
                raise ForeignFile(path, "it holds records of a log that this node does not know")
        remove_seals(disk, folder)
    _tidy(disk, folder, found, set())


def finish_swaps(disk: Disk, folder: str) -> None:
    """Give a mended segment its name if the damaged file was already renamed.

    If the damaged file is still in place, the mended one is not needed: it is fetched again.
    """
    names = set(disk.list(folder))
    mended = [name for name in names if name.endswith(LOG_SUFFIX + MENDED_SUFFIX)]
    for name in sorted(mended):
        wanted = name.removesuffix(MENDED_SUFFIX)
        if SEGMENT_NAME.fullmatch(name) and wanted not in names:
            disk.rename(f"{folder}/{name}", f"{folder}/{wanted}")
            disk.sync_now([], [folder])


def _look(names: list[str]) -> _Found:
    found = _Found()
    for name in names:
        match = SEGMENT_NAME.fullmatch(name)
        if match is None:
            continue  # not ours: never touched
        base = int(match[1])
        if match[3] is not None:
            found.unfinished.append(name)
        elif match[2] == LOG_SUFFIX:
            found.logs.append(base)
        else:
            found.indexes.add(base)
    return found


def _is_void(synced: SyncedPoint, start_offset: Offset, logs: list[Offset], first: int) -> bool:
    """Return whether the point's segment was dropped after the point was recorded."""
    if first >= 0 and logs[first] > synced.segment_base:
        return True
    return synced.segment_base not in logs and synced.end_offset <= start_offset


def _scan_first(
    segment: Segment,
    synced: SyncedPoint | None,
    term_at: TermAt,
    *,
    has_holes: bool,
) -> Offset:
    """Scan the synced point's segment from the point onwards; returns the end offset."""
    if synced is None:
        segment.start_index()
        segment.checksum = 0
        _scan(segment, 0, term_at)
        return segment.end
    if segment.size < synced.position:
        reason = f"the file has {segment.size} bytes, {synced.position} were synced"
        raise CorruptLog(segment.path, segment.size, reason)
    segment.end = segment.load_index(synced.position, synced.end_offset)
    if segment.end > synced.end_offset or (segment.end < synced.end_offset and not has_holes):
        reason = f"the batches end at offset {segment.end}, synced up to {synced.end_offset}"
        raise CorruptLog(segment.path, synced.position, reason)
    segment.end = synced.end_offset
    segment.checksum = synced.checksum
    _scan(segment, synced.position, term_at)
    return max(segment.end, synced.end_offset)


def _scan_later(
    disk: Disk,
    folder: str,
    config: LogConfig,
    bases: list[Offset],
    tail: list[Segment],
    term_at: TermAt,
) -> None:
    """Add the segments that follow without a gap to the tail."""
    for base in bases:
        before = tail[-1]
        if base != before.end or before.size < before.file.size():
            return
        segment = Segment.open(disk, folder, config, base)
        segment.start_index()
        segment.checksum = 0
        _scan(segment, 0, term_at)
        before.index.finish()
        tail.append(segment)


def _scan(segment: Segment, position: int, term_at: TermAt) -> None:
    """Set size, end and index of the segment to its good part; cuts nothing yet.

    The good part is rewritten, the same bytes in the same place: if a sync of them failed in an
    earlier run, the kernel counts their pages as clean, shows them, and would never write them.
    """
    size = segment.size
    index = segment.index
    window = Window(segment.file, size)
    with disk_errors(segment.path), _torn(segment):
        while position < size:
            window.load_unless_there(position, SCAN_BYTES)
            base, end, batch_size, max_timestamp_ms = window.head(position)
            view = BatchView(window.batch(position, batch_size, ahead_bytes=SCAN_BYTES))
            if base < segment.end or term_at(base) not in (view.term, None):
                break
            view.check_crc()
            segment.file.write(position, view.data)
            index.note(base, max_timestamp_ms, position)
            if segment.checksum is not None:
                segment.checksum = crc32c(view.data[:STAMP_BYTES], segment.checksum)
            position += batch_size
            segment.end = end
    segment.size = position


@contextmanager
def _torn(segment: Segment) -> Iterator[None]:
    """Treat a bad batch as the torn end of the last write.

    But not an unreadable one: it may be whole, and acknowledged. Raises CorruptLog.
    """
    try:
        yield
    except UnreadableBatch as bad:
        raise CorruptLog(segment.path, bad.position, bad.reason) from bad
    except (BadBatch, BatchError):
        return


def _tidy(disk: Disk, folder: str, found: _Found, kept: set[Offset]) -> None:
    """Remove what an interrupted trim, cut or compaction left, and what follows the tail.

    Durable before a file is cut: otherwise a crash could leave old segments behind a new end.
    """
    unwanted = sorted((found.indexes | set(found.logs)) - kept)
    for base in unwanted:
        remove_files(disk, stem_of(folder, base))
    with disk_errors(folder):
        for name in found.unfinished:
            disk.remove(f"{folder}/{name}")
        if unwanted or found.unfinished:
            disk.sync_now([], [folder])


def _settle(disk: Disk, folder: str, tail: list[Segment], synced: SyncedPoint | None) -> list[File]:
    """Cut the tail where it ends, and return its files still to be synced.

    A cut is synced here: a crash after new batches were written must not bring back the data behind
    it. So is a tail of several files, which is rare: all but the last are closed again.
    """
    files: list[File] = []
    is_cut = False
    for segment in tail:
        with disk_errors(segment.path):
            if segment.file.size() > segment.size:
                segment.file.truncate(segment.size)
                is_cut = True
        files += [segment.file, *_write_index(segment)]
    if len(tail) == 1 and not is_cut:
        # Indexes may be synced at any time: recovery trusts them only up to the point.
        end = (tail[0].base, tail[0].size)
        ends_synced = synced is not None and end == (synced.segment_base, synced.position)
        return files[1:] if ends_synced else files
    with disk_errors(folder):
        disk.sync_now(files, [folder])
    for segment in tail:
        if segment.is_closed:
            segment.unload_index()
    return []


def _write_index(segment: Segment) -> list[File]:
    """Bring the index files in line with the segment; returns the files to sync."""
    index = segment.index
    files = index.trim_files()
    if segment.is_closed:
        try:
            files = index.write()
        except DiskFull:
            # They are rebuilt when needed; a partial file would pass for a complete one.
            index.remove_files()
            files = []
    return files
