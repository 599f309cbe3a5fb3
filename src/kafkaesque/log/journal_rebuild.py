"""Rebuilds what the journal knew of a log from its segments, when the journal is lost.

A batch carries its offset and its term, so marks and the log's end can be recovered. The rest is
gone: the votes, the other replicas, terms without a record, and which of the first segment's
records were deleted. So a broker that continues from here starts in a term above all terms in the
segments, and must be the only voter.

Base offset and term lie outside a batch's checksum. A batch that does not fit between its
neighbours is skipped; a later read reports it as damage.
"""

from collections.abc import Iterator

from msgspec import Struct

from kafkaesque.entry import LogStart, TermOpened, Voters
from kafkaesque.errors import LogError
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.journal_records import (
    HolesAllowed,
    JournalRecord,
    StateSaved,
    mark_record,
    start_record,
    synced_record,
)
from kafkaesque.log.segment import LOG_SUFFIX, SEGMENT_NAME, SyncedPoint, stem_of
from kafkaesque.log.segments_recovery import finish_swaps
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import HEADER, HEADER_BYTES, MAGIC, BatchView
from kafkaesque.types import NO_TERM, GroupId, Offset, Term

_MAGIC_AT = 16
_SEARCH_BYTES = 1 << 20
_RECORD_BYTES_MIN = 7
"""The size of the smallest uncompressed record: bounds how many records bad bytes may hold."""


class Found(Struct, frozen=True, kw_only=True):
    """A log as reconstructed from its segments."""

    group: GroupId
    terms: tuple[tuple[Offset, Term], ...]
    """Where each term's records start, in order."""

    start: Offset
    point: SyncedPoint
    """Where its good batches end."""

    has_holes: bool
    bad_bytes: int
    """Bytes that are not a batch, or do not fit between their neighbours."""

    @property
    def end(self) -> Offset:
        """The first offset without a record."""
        return self.point.end_offset

    @property
    def last_term(self) -> Term:
        """The newest term with a record."""
        return self.terms[-1][1] if self.terms else NO_TERM

    def records(self, voters: Voters, term: Term) -> Iterator[JournalRecord]:
        """Yield the journal records of the log, which continues in the next term."""
        assert term > self.last_term
        start = LogStart(offset=self.start, marks_before=0, prev_term=NO_TERM, voters=voters)
        yield start_record(self.group, start, is_reset=False)
        yield StateSaved(group=self.group, term=term, vote=None)
        for marks, (offset, opened) in enumerate(self.terms):
            yield mark_record(self.group, offset + marks, opened, TermOpened())
        yield synced_record(self.group, self.point)
        if self.has_holes:
            yield HolesAllowed(group=self.group)


class _Run(Struct, kw_only=True):
    """Consecutive batches of one term."""

    term: Term
    first: Offset
    count: int


def find(disk: Disk, group: GroupId) -> Found | None:
    """Read all segments of a log; None if it has none. Raises LogError if they are inconsistent.

    Nothing is changed, except that an interrupted swap is finished.
    """
    with disk_errors(group):
        finish_swaps(disk, group)
        bases = _bases(disk, group)
        if not bases:
            return None
        walk = _Walk(bases[0])
        for base, end in zip(bases, [*bases[1:], None], strict=True):
            file = disk.open(stem_of(group, base) + LOG_SUFFIX)
            try:
                walk.read(file, base, end)
            finally:
                file.close()
    return Found(
        group=group,
        terms=_terms(group, walk.runs),
        start=bases[0],
        point=SyncedPoint(segment_base=bases[-1], position=walk.position, end_offset=walk.expected),
        has_holes=walk.has_holes,
        bad_bytes=walk.bad_bytes,
    )


def _bases(disk: Disk, folder: str) -> list[Offset]:
    matches = map(SEGMENT_NAME.fullmatch, disk.list(folder))
    return sorted(int(one[1]) for one in matches if one and one[2] == LOG_SUFFIX and not one[3])


def _terms(group: GroupId, runs: list[_Run]) -> tuple[tuple[Offset, Term], ...]:
    """Return where terms start, ignoring single batches whose term does not fit."""
    kept: list[_Run] = []
    for place, run in enumerate(runs):
        before = kept[-1].term if kept else NO_TERM
        after = runs[place + 1].term if place + 1 < len(runs) else run.term
        is_last = place + 1 == len(runs)
        is_stray = run.count == 1 and (
            run.term < before if is_last else before <= after and not before <= run.term <= after
        )
        if is_stray or run.term == before:
            continue
        if run.term < before:
            raise LogError(f"the terms of {group} go back at offset {run.first}, from {before}")
        kept.append(run)
    return tuple((run.first, run.term) for run in kept)


class _Walk:
    """Scans the files of a log in order, skipping their bad parts."""

    def __init__(self, start: Offset) -> None:
        self.expected = start
        self.position = 0
        """Where the good batches of the last file end."""
        self.runs: list[_Run] = []
        self.has_holes = False
        self.bad_bytes = 0

    def read(self, file: File, base: Offset, end: Offset | None) -> None:
        """Scan the file of [base, end), or of [base, …) if it is the last."""
        size = file.size()
        at = self.position = skipped = misfits = 0
        self.expected = max(self.expected, base)
        while at < size:  # terminates: each iteration advances
            view = _batch(file, at, size)
            if view is None or not self._fits(file, view, at, size, end, skipped):
                moved = _next_candidate(file, at + 1, size) - at if view is None else view.size
                at, skipped = at + moved, skipped + moved
                misfits += 0 if view is None else view.end_offset - view.base_offset
                continue
            self._take(view, is_hole=not skipped and view.base_offset > self.expected)
            self.bad_bytes += skipped
            at += view.size
            self.position, skipped, misfits = at, 0, 0
        self.bad_bytes += skipped
        if end is not None:
            self.expected = end
        elif misfits:  # valid batches in a wrong place: their offsets are not reused
            self.expected += misfits
            self.position = size

    def _fits(
        self, file: File, view: BatchView, at: int, size: int, end: Offset | None, skipped: int
    ) -> bool:
        """Return whether a batch may follow what was read, judging by its base offset."""
        if view.base_offset < self.expected or (end is not None and view.end_offset > end):
            return False
        if view.base_offset == self.expected:
            return True
        if skipped:
            lost = view.base_offset - self.expected
            return end is not None or lost <= max(1, skipped // _RECORD_BYTES_MIN)
        after = _batch(file, at + view.size, size)  # a hole, or a flipped bit in the base offset
        return end is not None if after is None else after.base_offset >= view.end_offset

    def _take(self, view: BatchView, *, is_hole: bool) -> None:
        self.has_holes |= is_hole
        if self.runs and self.runs[-1].term == view.term:
            self.runs[-1].count += 1
        else:
            self.runs.append(_Run(term=view.term, first=view.base_offset, count=1))
        self.expected = view.end_offset


def _batch(file: File, at: int, size: int) -> BatchView | None:
    """Return the batch at a position if it is complete and valid."""
    if size - at < HEADER_BYTES:
        return None
    _, length, _, magic, *_ = HEADER.unpack(file.read(at, HEADER_BYTES))
    whole = length + 12
    if magic != MAGIC or not HEADER_BYTES <= whole <= size - at:
        return None
    try:
        view = BatchView(file.read(at, whole))
        view.check_crc()
    except BatchError:
        return None
    return view


def _next_candidate(file: File, at: int, size: int) -> int:
    """Return the next position with a batch's magic in its place, or the end."""
    looked = at + _MAGIC_AT
    while looked < size:
        data = file.read(looked, min(_SEARCH_BYTES, size - looked))
        found = data.find(MAGIC)
        if found >= 0:
            return looked + found - _MAGIC_AT
        if not data:
            break
        looked += len(data)
    return size
