"""Damage known in one replica's log: noted durably, and reported as events."""

from msgspec.structs import replace

from kafkaesque.errors import LogError
from kafkaesque.events import DamageFound, DamageNotNoted, Events, SealsLost, TailLost
from kafkaesque.log.damage import ANYWHERE, NOTES_MAX, Damage, load_damage, save_damage
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.log_salvage import load_given_up
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.log.segment import SEGMENT_NAME
from kafkaesque.types import GroupId, Offset


class DamageNotes:
    """The damaged places of one log. Damage before the log's start is dropped."""

    def __init__(self, group: GroupId, of: PartitionLog, events: Events) -> None:
        self._group = group
        self._log = of
        self._events = events
        segments = of.segments
        start = of.start.first_offset
        loaded = load_damage(segments.disk, segments.folder)
        for one in loaded:
            if one.offset == ANYWHERE:  # not reported yet, unlike damage found by this broker
                events.tell(DamageFound(partition=group, offset=start, reason=one.reason))
        self._noted = tuple(
            replace(one, offset=start) if one.offset == ANYWHERE else one for one in loaded
        )
        self.given_up = load_given_up(segments.disk, segments.folder)
        """Ranges that an operator has given up (`kafkaesque log repair`)."""
        self.tail_lost_at: Offset | None = None
        """Where the log ended when its leader had counted more, in this run of the broker."""
        if segments.seals.lost is not None:
            events.tell(SealsLost(partition=group, reason=str(segments.seals.lost)))
        for error in segments.found:
            self.add(error.offset or 0, error)
        if of.has_holes:
            for one in self.found:
                segments.doubt(one.offset, one.reason)

    @property
    def found(self) -> tuple[Damage, ...]:
        """The known damage in the part that the log still holds."""
        if not self._noted:
            return ()
        first = self._log.start.first_offset
        return tuple(one for one in self._noted if one.offset >= first)

    def place_of(self, error: CorruptLog, offset: Offset | None) -> Offset:
        """Return where damage lies that was found by a read at `offset`, or without one.

        A read may continue into a later segment than the one where it started.
        """
        first = self._log.start.first_offset
        name = SEGMENT_NAME.fullmatch(error.path.rpartition("/")[2])
        base = first if name is None else int(name[1])
        wanted = error.offset if offset is None else offset
        return max(base, first if wanted is None else wanted)

    def clear(self, first: Offset, end: Offset) -> None:
        """Forget damage in [first, end), durably: the range is whole again. Raises LogError."""
        self._noted = tuple(one for one in self.found if not first <= one.offset < end)
        segments = self._log.segments
        save_damage(segments.disk, segments.folder, self._noted)

    def lose_tail(self, end: Offset) -> None:
        """Note that the log ends before what this replica acknowledged to its current leader."""
        self.tail_lost_at = end
        self._events.tell(TailLost(partition=self._group, offset=end))

    def add(self, offset: Offset, error: CorruptLog) -> None:
        """Note that data at `offset` cannot be read; known damage is not reported again."""
        found = self.found
        offset = max(offset, self._log.start.first_offset)  # earlier records are gone anyway
        if len(found) >= NOTES_MAX or any(one.offset == offset for one in found):
            return
        span = self._log.segments.doubted(offset)
        if span is not None and any(span[0] <= one.offset < span[1] for one in found):
            return  # one note per damaged segment is enough
        self._noted = (*found, Damage(offset=offset, reason=str(error)))
        self._events.tell(DamageFound(partition=self._group, offset=offset, reason=str(error)))
        segments = self._log.segments
        try:
            save_damage(segments.disk, segments.folder, self._noted)
        except LogError as failure:  # the note holds for this run; the next run finds it again
            self._events.tell(DamageNotNoted(partition=self._group, reason=str(failure)))
