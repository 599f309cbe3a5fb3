"""Salvage: keep the good parts of a damaged log that has no other copy, and give up the rest.

For a stopped broker, after an operator's decision. `survey` reads everything that was ever
synced and changes nothing. `give_up` rewrites damaged segments without the unreadable parts. It
leaves holes, as compaction does: consumers skip them, and all other offsets stay.

The order makes every crash harmless: save the list of losses; note in the journal that the log may
have holes; swap each file as `log/segment_repair.py` does, once both the old and the new file have
a seal; note the last file's new size in the journal; delete the damage notes. After an
interruption, run it again.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from kafkaesque.errors import LogError
from kafkaesque.log.checked_file import CheckedFile
from kafkaesque.log.damage import DAMAGED_SUFFIX, next_serial, save_damage
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import GroupState, HolesAllowed, synced_record
from kafkaesque.log.seals import Seal, Sealing, Seals
from kafkaesque.log.segment import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    MENDED_SUFFIX,
    SEGMENT_NAME,
    stem_of,
)
from kafkaesque.log.segment_check import is_same
from kafkaesque.log.segments_recovery import finish_swaps
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import HEADER, HEADER_BYTES, MAGIC, BatchView
from kafkaesque.types import GroupId, Offset, Term

NAME = "given-up"
GIVEN_UP_MAX = 1000
"""Number of ranges remembered per log; the newest are kept."""

_FILE = CheckedFile(name=NAME, magic=b"KQGU", format=1)
_SEARCH_BYTES = 1 << 20
_COPY_BYTES = 1 << 20
_MAGIC_AT = 16
_REPAIR_SUFFIX = ".repair"


class Loss(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Offsets [first, end) that can no longer be read."""

    first: Offset
    end: Offset
    bytes: int
    """How many bytes of the file are bad; 0 if they are missing."""

    file: str

    @property
    def records(self) -> int:
        """The number of records lost, an upper bound if some had been compacted away before."""
        return self.end - self.first


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """The target state of one segment."""

    base: Offset
    runs: tuple[tuple[int, int], ...]
    """The byte ranges [from, to) that are kept."""

    is_changed: bool
    size: int
    """Bytes that were synced and are kept."""

    seal: Seal | None
    """The seal of the kept batches; None for the last segment, which is not closed."""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What a log has lost, and the target state of its files."""

    losses: tuple[Loss, ...]
    files: tuple[_File, ...]
    strays: tuple[str, ...]
    """Index files without a segment."""

    is_point_wrong: bool
    """Whether the journal's size for the last synced file is, or will be, too large."""

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.losses or self.strays or self.is_point_wrong or self._has_changes)

    @property
    def _has_changes(self) -> bool:
        return any(file.is_changed for file in self.files)


def survey(disk: Disk, group: GroupId, state: GroupState) -> Survey:
    """Read every synced part of a log and report losses, without changing anything.

    Exception: an interrupted swap is finished, as a start of the broker would do.
    """
    with disk_errors(group):
        finish_swaps(disk, group)
    synced = state.synced
    if synced is None:
        return Survey(losses=(), files=(), strays=(), is_point_wrong=False)
    start = state.marks.start.offset
    names = disk.list(group)
    matches = [match for match in map(SEGMENT_NAME.fullmatch, names) if match and not match[3]]
    bases = sorted(int(match[1]) for match in matches if match[2] == LOG_SUFFIX)
    bases = [base for base in bases if base <= synced.segment_base]
    first = max((base for base in bases if base <= start), default=start)
    seals = Seals.load(disk, group)
    known = {*bases, *(seal.base for seal in seals.all() if seal.base < synced.segment_base)}
    wanted = sorted({first, synced.segment_base, *(base for base in known if base > first)})
    losses: list[Loss] = []
    files: list[_File] = []
    for place, base in enumerate(wanted):
        is_last = base == synced.segment_base
        end = synced.end_offset if is_last else wanted[place + 1]
        limit = synced.position if is_last else None
        file, lost = _survey_file(disk, group, base, end, state, limit, is_there=base in bases)
        if not file.is_changed and _is_unlike(file, seals):
            # In a log with holes only the seal shows that something is missing, but not what.
            path = stem_of(group, base) + LOG_SUFFIX
            lost = lost or [Loss(first=base, end=end, bytes=0, file=path)]
            file = replace(file, is_changed=True)
        files.append(file)
        losses += [one for one in lost if one.end > start]
    strays = tuple(
        match[0]
        for match in matches
        if match[2] != LOG_SUFFIX
        and first < int(match[1]) < synced.segment_base
        and int(match[1]) not in bases
    )
    is_wrong = files[-1].size != synced.position
    return Survey(losses=tuple(losses), files=tuple(files), strays=strays, is_point_wrong=is_wrong)


def give_up(disk: Disk, journal: Journal, group: GroupId, found: Survey) -> None:
    """Drop the lost parts, durably, so that the log can continue."""
    state = journal.groups[group]
    synced = state.synced
    assert synced is not None, "what was never synced is not damaged"
    if found.losses:
        known = load_given_up(disk, group)
        new = [loss for loss in found.losses if loss not in known]
        _FILE.save(disk, group, msgspec.msgpack.encode((*known, *new)[-GIVEN_UP_MAX:]))
    if not state.has_holes:
        journal.add(HolesAllowed(group=group))
        journal.write_now()
    seals = Seals.load(disk, group)
    with disk_errors(group):
        for name in found.strays:
            _put_aside(disk, group, name)
        for file in found.files:
            if file.is_changed:
                _rewrite(disk, group, file, seals)
    last = found.files[-1]
    checksum = None if last.is_changed else synced.checksum
    point = replace(synced, position=last.size, checksum=checksum)
    if point != synced:
        journal.add(synced_record(group, point))
        journal.write_now()
    save_damage(disk, group, ())


def load_given_up(disk: Disk, group: GroupId) -> tuple[Loss, ...]:
    """Return the ranges given up in a log; an unreadable file counts as empty."""
    data = _FILE.load(disk, group)
    state = None if data is None else _FILE.state(f"{group}/{NAME}", data)
    if state is not None:
        with suppress(msgspec.MsgspecError):
            return msgspec.msgpack.decode(state, type=tuple[Loss, ...])
    return ()


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def _survey_file(
    disk: Disk,
    group: GroupId,
    base: Offset,
    end: Offset,
    state: GroupState,
    limit: int | None,
    *,
    is_there: bool,
) -> tuple[_File, list[Loss]]:
    """Scan one file, of which the first `limit` bytes were synced, or all."""
    path = stem_of(group, base) + LOG_SUFFIX
    if not is_there:
        lost = [Loss(first=base, end=end, bytes=0, file=path)] if end > base else []
        seal = Sealing().seal(base, end) if limit is None else None
        return _File(base=base, runs=(), is_changed=True, size=0, seal=seal), lost
    with disk_errors(path):
        file = disk.open(path)
        try:
            size = file.size()
            synced = size if limit is None else min(limit, size)
            scan = _Scan(file, path, synced, base, end, state)
            runs = scan.run()
        finally:
            file.close()
    kept = sum(to - start for start, to in runs)
    if limit is not None and size > synced:
        runs = [*runs, (synced, size)]  # not synced: recovery checks it
    is_changed = kept != synced
    seal = scan.sealing.seal(base, end) if limit is None else None
    found = _File(base=base, runs=tuple(runs), is_changed=is_changed, size=kept, seal=seal)
    return found, scan.losses


def _is_unlike(file: _File, seals: Seals) -> bool:
    """Return whether a file of good batches does not match its seal."""
    known = seals.of(file.base)
    seal = file.seal
    return seal is not None and bool(known) and not any(is_same(seal, one) for one in known)


class _Scan:
    """Scans a file, skipping its bad parts."""

    def __init__(
        self,
        file: File,
        path: str,
        size: int,
        base: Offset,
        end: Offset,
        state: GroupState,
    ) -> None:
        self.losses: list[Loss] = []
        self.sealing = Sealing()
        self._file = file
        self._path = path
        self._size = size
        self._end = end
        self._has_holes = state.has_holes
        self._start = state.marks.start.offset
        self._term_of: Callable[[Offset], Term] = state.marks.term_of_record
        self._expected = base

    def run(self) -> list[tuple[int, int]]:
        """Return the good ranges of the file, and note what is lost between and after them."""
        runs: list[tuple[int, int]] = []
        position = begun = 0
        while position < self._size:  # terminates: each iteration advances
            view = self._batch(position)
            if view is None:
                if position > begun:
                    runs.append((begun, position))
                position = begun = self._skip(position)
                continue
            if view.base_offset > self._expected and not self._has_holes:
                self._lose(view.base_offset, 0)
            self._expected = view.end_offset
            self.sealing.note(view.data, view.size)
            position += view.size
        if position > begun:
            runs.append((begun, position))
        if self._expected < self._end and not self._has_holes:
            self._lose(self._end, 0)
        return runs

    def _skip(self, position: int) -> int:
        """Return where the next good batch starts after a bad one, or the end of the file."""
        for at in self._candidates(position + 1):
            view = self._batch(at)
            if view is not None:
                self._lose(view.base_offset, at - position)
                return at
        self._lose(self._end, self._size - position)
        self._expected = self._end
        return self._size

    def _lose(self, end: Offset, size: int) -> None:
        if end <= self._expected:
            return  # garbage between two batches
        self.losses.append(Loss(first=self._expected, end=end, bytes=size, file=self._path))
        self._expected = end

    def _candidates(self, position: int) -> Iterator[int]:
        """Yield the positions, from `position`, where a batch's magic is in its place."""
        at = position + _MAGIC_AT
        while at < self._size:
            data = self._file.read(at, min(_SEARCH_BYTES, self._size - at))
            if not data:
                return
            found = data.find(MAGIC)
            while found >= 0:
                yield at + found - _MAGIC_AT
                found = data.find(MAGIC, found + 1)
            at += len(data)

    def _batch(self, position: int) -> BatchView | None:
        """Return the batch at a position if it is complete, valid and belongs here in the log."""
        if self._size - position < HEADER_BYTES:
            return None
        head = self._file.read(position, HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            return None
        base, length, term, magic, *_ = HEADER.unpack(head)
        if magic != MAGIC or not self._expected <= base < self._end:
            return None
        size = length + 12
        if not HEADER_BYTES <= size <= self._size - position:
            return None
        if base >= self._start and term != self._term_of(base):
            return None
        try:
            view = BatchView(self._file.read(position, size))
            view.check_crc()
        except BatchError:
            return None
        return view if view.end_offset <= self._end else None


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def _rewrite(disk: Disk, group: GroupId, file: _File, seals: Seals) -> None:
    """Write a segment without its bad parts, and replace the old one with it."""
    stem = stem_of(group, file.base)
    path = stem + LOG_SUFFIX
    name = path.rpartition("/")[2]
    with suppress(FileNotFoundError):
        disk.remove(path + _REPAIR_SUFFIX)
    new = disk.create(path + _REPAIR_SUFFIX)
    try:
        if file.runs:
            _copy(disk, path, file.runs, new)
        for suffix in INDEX_SUFFIXES:  # they are rebuilt when needed
            with suppress(FileNotFoundError):
                disk.remove(stem + suffix)
        disk.sync_now([new], [])
    finally:
        new.close()
    if file.seal is not None:
        if seals.of(file.base):
            seals.expect(file.seal)
        else:
            seals.put(file.seal)
        seals.save_now()
    disk.rename(path + _REPAIR_SUFFIX, path + MENDED_SUFFIX)
    disk.sync_now([], [group])
    if name in disk.list(group):
        _put_aside(disk, group, name)
    disk.rename(path + MENDED_SUFFIX, path)
    disk.sync_now([], [group])
    if file.seal is not None:
        seals.put(file.seal)
        seals.save_now()


def _copy(disk: Disk, path: str, runs: tuple[tuple[int, int], ...], new: File) -> None:
    old = disk.open(path)
    at = 0
    try:
        for position, end in runs:
            while position < end:  # terminates: an empty read raises
                data = old.read(position, min(_COPY_BYTES, end - position))
                if not data:
                    raise LogError(f"{path} shrank while it was being read")
                new.write(at, data)
                at += len(data)
                position += len(data)
    finally:
        old.close()


def _put_aside(disk: Disk, group: GroupId, name: str) -> None:
    serial = next_serial(disk.list(group))
    disk.rename(f"{group}/{name}", f"{group}/{name}.{serial}{DAMAGED_SUFFIX}")
