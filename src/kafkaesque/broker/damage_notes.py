"""What one replica knows of damage to its log, and tells: durably, and in the broker's log."""

import logging

from msgspec.structs import replace

from kafkaesque.errors import CorruptLog, LogError
from kafkaesque.log.damage import ANYWHERE, NOTES_MAX, Damage, load_damage, save_damage
from kafkaesque.log.giving_up import load_given_up
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.log.segment import SEGMENT_NAME
from kafkaesque.types import GroupId, Offset

log = logging.getLogger(__name__)


class DamageNotes:
    """The damaged places of one log. Those before its start are gone with what was there."""

    def __init__(self, group: GroupId, of: PartitionLog) -> None:
        self._group = group
        self._log = of
        segments = of.segments
        start = of.start.first_offset
        loaded = load_damage(segments.disk, segments.folder)
        for one in loaded:
            if one.offset == ANYWHERE:  # nobody has told of it, as of others when they were found
                log.error("damage_found partition=%s offset=%d reason=%s", group, start, one.reason)
        self._noted = tuple(
            replace(one, offset=start) if one.offset == ANYWHERE else one for one in loaded
        )
        self.given_up = load_given_up(segments.disk, segments.folder)
        """What a person has given up of this log (`kafkaesque log repair`)."""
        self.tail_lost_at: Offset | None = None
        """Where the log ended when its leader counted more, in this run of the broker."""
        if segments.seals.lost is not None:
            log.warning("seals_lost partition=%s reason=%s", group, segments.seals.lost)
        for error in segments.found:
            self.add(error.offset or 0, error)
        if of.has_holes:
            for one in self.found:
                segments.doubt(one.offset, one.reason)

    @property
    def found(self) -> tuple[Damage, ...]:
        """What is known to be damaged in what the log still holds."""
        if not self._noted:
            return ()
        first = self._log.start.first_offset
        return tuple(one for one in self._noted if one.offset >= first)

    def place_of(self, error: CorruptLog, offset: Offset | None) -> Offset:
        """Return where the damage is that was found when `offset` was wanted, if one was.

        A read may go on into a later segment than the one that it began in.
        """
        first = self._log.start.first_offset
        name = SEGMENT_NAME.fullmatch(error.path.rpartition("/")[2])
        base = first if name is None else int(name[1])
        wanted = error.offset if offset is None else offset
        return max(base, first if wanted is None else wanted)

    def clear(self, first: Offset, end: Offset) -> None:
        """Forget damage in [first, end), where all is whole again, durably; raises LogError."""
        self._noted = tuple(one for one in self.found if not first <= one.offset < end)
        segments = self._log.segments
        save_damage(segments.disk, segments.folder, self._noted)

    def lose_tail(self, end: Offset) -> None:
        """Learn that the log ends before what this replica acknowledged to its present leader."""
        self.tail_lost_at = end
        log.error(
            "tail_lost partition=%s offset=%d: the disk has lost what was synced and acknowledged "
            "from there on; the replica does not vote until a leader has sent it again",
            self._group,
            end,
        )

    def add(self, offset: Offset, error: CorruptLog) -> None:
        """Note that what begins at `offset` cannot be read; one that is known is not news."""
        found = self.found
        offset = max(offset, self._log.start.first_offset)  # what is before that is gone anyway
        if len(found) >= NOTES_MAX or any(one.offset == offset for one in found):
            return
        span = self._log.segments.doubted(offset)
        if span is not None and any(span[0] <= one.offset < span[1] for one in found):
            return  # one note is enough for a segment that is known as damaged
        self._noted = (*found, Damage(offset=offset, reason=str(error)))
        log.error("damage_found partition=%s offset=%d reason=%s", self._group, offset, error)
        segments = self._log.segments
        try:
            save_damage(segments.disk, segments.folder, self._noted)
        except LogError as failure:  # it holds for this run, and the next one finds it again
            log.error("damage_not_noted partition=%s reason=%s", self._group, failure)  # noqa: TRY400
