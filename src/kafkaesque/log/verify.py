"""Check that the logs in a data folder are what was written; reads them all, changes nothing.

A broker may be running on the folder: it may append, compact and delete meanwhile, so a mismatch is
checked again against the journal's newer state.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct

from kafkaesque.errors import KafkaesqueError
from kafkaesque.log.journal import PATH as JOURNAL
from kafkaesque.log.journal import read_journal
from kafkaesque.log.journal_records import GroupState
from kafkaesque.log.log_inspection import ReadOnly
from kafkaesque.log.seals import NAME as SEALS
from kafkaesque.log.seals import Seal, decode_seals
from kafkaesque.log.segment import LOG_SUFFIX, SEGMENT_NAME
from kafkaesque.log.segment_check import BadPlace, check_segment
from kafkaesque.types import GroupId, Offset, Term

LOOKS_MAX = 3
"""How often to check a log that does not match, because a broker may have changed it."""


class Place(Struct, frozen=True, kw_only=True):
    """A place that is not what was written."""

    file: str
    position: int
    offset: Offset
    reason: str


class Verified(Struct, frozen=True, kw_only=True):
    """The result for one partition."""

    group: GroupId
    segments: int
    bytes: int
    unsealed: int
    """Closed segments without a seal: there a removed batch may go unnoticed."""

    damage: tuple[Place, ...]


def verify(data: Path, only: Collection[GroupId] = ()) -> Iterator[Verified]:
    """Verify the logs in a data folder, all or only these; raises OSError, KafkaesqueError."""
    for group in sorted(_groups(data)):
        if not only or group in only:
            yield _verify(data, group)


def groups_in(data: Path) -> list[GroupId]:
    """Return the partitions in the folder's journal; raises OSError, KafkaesqueError."""
    return sorted(_groups(data))


def _groups(data: Path) -> dict[GroupId, GroupState]:
    return read_journal((data / JOURNAL).read_bytes())[1]


def _verify(data: Path, group: GroupId) -> Verified:
    found = _look(data, group)
    for _ in range(LOOKS_MAX - 1):
        if not found.damage:
            break
        again = _look(data, group)
        is_settled = again.damage == found.damage
        found = again
        if is_settled:
            break
    return found


def _look(data: Path, group: GroupId) -> Verified:
    state = _groups(data).get(group)
    if state is None or state.is_reset or state.synced is None:
        return Verified(group=group, segments=0, bytes=0, unsealed=0, damage=())
    return _Look(data / group, group, state).run()


class _Look:
    """One check of one partition's folder."""

    def __init__(self, folder: Path, group: GroupId, state: GroupState) -> None:
        self._folder = folder
        self._group = group
        self._state = state
        self._damage: list[Place] = []
        self._segments = self._bytes = self._unsealed = 0

    def run(self) -> Verified:
        synced = self._state.synced
        assert synced is not None
        start = self._state.marks.start.offset
        seals = self._seals()
        there = self._bases()
        closed = {
            base: ours
            for base, ours in seals.items()
            if base < synced.segment_base and ours[-1].end > start
        }
        expected = sorted({*there, *closed, synced.segment_base})
        expected = [base for base in expected if base <= synced.segment_base]
        first = max((base for base in expected if base <= start), default=start)
        expected = sorted({first, *(base for base in expected if base > first)})
        for base, end in zip(expected, [*expected[1:], synced.end_offset], strict=True):
            ours = closed.get(base, ())
            size = synced.position if base == synced.segment_base else None
            self._unsealed += size is None and not ours
            self._check(base, end, size, ours)
        return Verified(
            group=self._group,
            segments=self._segments,
            bytes=self._bytes,
            unsealed=self._unsealed,
            damage=tuple(self._damage),
        )

    def _bases(self) -> list[Offset]:
        names = [] if not self._folder.is_dir() else [path.name for path in self._folder.iterdir()]
        found = [SEGMENT_NAME.fullmatch(name) for name in names]
        return sorted(int(one[1]) for one in found if one and one[2] == LOG_SUFFIX and not one[3])

    def _seals(self) -> dict[Offset, tuple[Seal, ...]]:
        path = self._folder / SEALS
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return {}
        found = decode_seals(str(path), data)
        if found is None:
            self._note(path, BadPlace(position=0, offset=0, reason="the file is damaged"))
        seals: dict[Offset, tuple[Seal, ...]] = {}
        for seal in found or ():
            seals[seal.base] = (*seals.get(seal.base, ()), seal)
        return seals

    def _check(self, base: Offset, end: Offset, size: int | None, seals: tuple[Seal, ...]) -> None:
        path = self._folder / f"{base:020d}{LOG_SUFFIX}"
        try:
            file = ReadOnly(path)
        except FileNotFoundError:
            self._note(path, BadPlace(position=0, offset=base, reason="the file is missing"))
            return
        try:
            there = path.stat().st_size
            found = self._read(file, there if size is None else size, base, end, seals)
        except (OSError, KafkaesqueError) as error:
            found = BadPlace(position=0, offset=base, reason=f"it cannot be read: {error}")
        finally:
            file.close()
        self._segments += 1
        if isinstance(found, BadPlace):
            self._note(path, found)

    def _read(
        self, file: ReadOnly, size: int, base: Offset, end: Offset, seals: tuple[Seal, ...]
    ) -> Seal | BadPlace:
        steps = check_segment(
            file,  # type: ignore[arg-type]  # it is only read
            size,
            base=base,
            end=end,
            term_at=self._term_at,
            has_holes=self._state.has_holes,
            seals=seals,
        )
        while True:  # terminates at the end of the file
            try:
                self._bytes += next(steps)
            except StopIteration as stop:
                found: Seal | BadPlace = stop.value
                return found

    def _term_at(self, offset: Offset) -> Term | None:
        marks = self._state.marks
        return None if offset < marks.start.offset else marks.term_of_record(offset)

    def _note(self, path: Path, bad: BadPlace) -> None:
        self._damage.append(
            Place(file=str(path), position=bad.position, offset=bad.offset, reason=bad.reason)
        )
