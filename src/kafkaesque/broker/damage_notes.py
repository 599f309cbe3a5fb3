"""What one replica knows of damage to its log, and tells: durably, and in the broker's log."""

import logging

from kafkaesque.errors import CorruptLog, LogError
from kafkaesque.log.damage import NOTES_MAX, Damage, load_damage, save_damage
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.types import GroupId, Offset

log = logging.getLogger(__name__)


class DamageNotes:
    """The damaged places of one log. Those before its start are gone with what was there."""

    def __init__(self, group: GroupId, of: PartitionLog) -> None:
        self._group = group
        self._log = of
        segments = of.segments
        self._noted = load_damage(segments.disk, segments.folder)
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
