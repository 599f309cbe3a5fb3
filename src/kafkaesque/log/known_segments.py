"""Check the closed segments of a log that is being opened against their seals.

The check compares which files exist, their sizes, and the first and last batch of each: it does not
read everything. A segment that does not match its seal is read to its first bad place, and is good
up to there. An empty file, with nothing good in it, replaces a missing segment; so the log keeps
its end, and reads of the lost part get an error. A file whose base lies within another segment's
offsets belongs to no segment and is renamed.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator
from itertools import pairwise

from kafkaesque.config import LogConfig
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.seals import Seal, Seals, is_like, lost_seal
from kafkaesque.log.segment import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    Segment,
    SyncedPoint,
    stem_of,
)
from kafkaesque.log.segment_check import BadPlace, check_segment
from kafkaesque.types import Offset, Term

FOREIGN_SUFFIX = ".foreign"

TermAt = Callable[[Offset], Term | None]
"""Returns the term of the record at an offset; None if unknown, for trimmed records."""


class KnownSegments:
    """Compares the seals of one log with the files in its folder."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        config: LogConfig,
        seals: Seals,
        term_at: TermAt,
        *,
        has_holes: bool,
    ) -> None:
        self.damage: list[CorruptLog] = []
        self.strangers: set[Offset] = set()
        self._disk = disk
        self._folder = folder
        self._config = config
        self._seals = seals
        self._term_at = term_at
        self._has_holes = has_holes
        self._lost: dict[Offset, str] = {}

    def kept(
        self,
        logs: list[Offset],
        indexes: set[Offset],
        synced: SyncedPoint,
        start_offset: Offset,
    ) -> list[Offset]:
        """Return the bases of the log's segments, lost ones included; changes nothing.

        Raises CorruptLog if the segment of the synced point is missing. Anything after that one may
        be torn, so its seals are ignored.
        """
        closed = [
            seal
            for seal in self._seals.all()
            if seal.base < synced.segment_base and seal.end > start_offset
        ]
        for seal in closed:
            if seal.base not in logs:
                self._lost[seal.base] = "the file is missing, though it was sealed"
        spans = {seal.base: seal.end for seal in closed}
        self.strangers = {
            base
            for base in logs
            if base not in spans and any(one < base < end for one, end in spans.items())
        }
        there = sorted({*logs, *self._lost} - self.strangers)
        kept = there[max(bisect_right(there, start_offset) - 1, 0) :]
        if synced.segment_base not in kept:
            path = stem_of(self._folder, synced.segment_base) + LOG_SUFFIX
            raise CorruptLog(path, 0, "the file is missing, though it was synced")
        if kept[0] > start_offset:
            self._lost[start_offset] = (
                f"no segment holds offset {start_offset}, where the log starts"
            )
        for base in indexes.difference(kept, self.strangers):
            if kept[0] < base < synced.segment_base:
                self._lost[base] = "the file is missing, though its index is there"
        return sorted({*kept, *self._lost})

    def open(self, bases: list[Offset]) -> list[Segment]:
        """Open the closed segments: all of these but the last."""
        for base in sorted(self.strangers):
            self._set_aside(base)
        opened: list[Segment] = []
        for base, end in pairwise(bases):
            if base in self._lost:
                if not self._seals.of(base):
                    self._seals.put(lost_seal(base, end))
                segment = Segment.create(self._disk, self._folder, self._config, base)
                self._doubt(segment, BadPlace(position=0, offset=base, reason=self._lost[base]))
            else:
                segment = Segment.open(self._disk, self._folder, self._config, base)
                self._compare(segment, end, is_first=not opened)
            opened.append(segment)
        return opened

    def seal_again(self, segments: list[Segment], tail: list[Segment]) -> None:
        """Make the seals match these segments, whose tail was read again.

        Seals behind the synced point are removed, durably, before the point moves on.
        """
        closed = {segment.base for segment in segments[: len(segments) - len(tail)]}
        behind = [base for base in self._seals.bases_from(0) if base not in closed]
        if behind:
            self._seals.forget(behind)
            self._seals.save_now()
        for segment in tail[:-1]:
            seal = segment.seal()
            if seal is not None:
                self._seals.put(seal)

    def _compare(self, segment: Segment, end: Offset, *, is_first: bool) -> None:
        seals = self._seals.of(segment.base)
        with disk_errors(segment.path):
            like = next((one for one in seals if is_like(segment.file, segment.size, one)), None)
        if like is not None:
            self._seals.put(like)
        elif seals:
            self._doubt(segment, self._first_bad(segment, end, seals))
        elif segment.size == 0 and not (is_first and self._has_holes):
            # Compaction leaves an empty file only at the start of the log.
            reason = "the file is empty"
            self._doubt(segment, BadPlace(position=0, offset=segment.base, reason=reason))

    def _first_bad(self, segment: Segment, end: Offset, seals: tuple[Seal, ...]) -> BadPlace:
        found = _last(
            check_segment(
                segment.file,
                segment.size,
                base=segment.base,
                end=end,
                term_at=self._term_at,
                has_holes=self._has_holes,
                seals=seals,
            )
        )
        if isinstance(found, BadPlace) and not self._has_holes:
            return found
        # Where holes are allowed, removed data goes unnoticed.
        reason = "the file does not match its seal"
        if isinstance(found, BadPlace):
            reason += f": {found.reason} at byte {found.position}"
        return BadPlace(position=0, offset=segment.base, reason=reason)

    def _doubt(self, segment: Segment, bad: BadPlace) -> None:
        self.damage.append(CorruptLog(segment.path, bad.position, bad.reason, offset=bad.offset))
        segment.doubt(bad.position, bad.reason)

    def _set_aside(self, base: Offset) -> None:
        """Rename files that are in the way to names that no segment uses."""
        stem = stem_of(self._folder, base)
        reason = "the file lies within another segment"
        self.damage.append(CorruptLog(stem + LOG_SUFFIX, 0, reason, offset=base))
        with disk_errors(stem):
            names = self._disk.list(self._folder)
            for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
                name = f"{base:020d}{suffix}"
                if name in names:
                    serial = sum(one.startswith(name + FOREIGN_SUFFIX) for one in names)
                    target = f"{stem}{suffix}{FOREIGN_SUFFIX}.{serial}"
                    self._disk.rename(stem + suffix, target)
            self._disk.sync_now([], [self._folder])


def _last(steps: Generator[int, None, Seal | BadPlace]) -> Seal | BadPlace:
    """Run all steps and return the result."""
    while True:  # terminates at the end of the file
        try:
            next(steps)
        except StopIteration as end:
            found: Seal | BadPlace = end.value
            return found
