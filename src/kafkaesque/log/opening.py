"""The segments of one group as its journal and its disk leave them after any stop."""

from kafkaesque.clock import Clock
from kafkaesque.config import LogConfig
from kafkaesque.log.disk import Disk
from kafkaesque.log.journal_records import GroupState
from kafkaesque.log.segments import Segments
from kafkaesque.types import GroupId


def recover_segments(
    group: GroupId, state: GroupState, disk: Disk, config: LogConfig, clock: Clock
) -> Segments:
    """Return the segments as the journal says that they are; raises CorruptLog if they are not."""
    start = state.marks.start.offset
    if state.is_reset:
        return Segments.create_anew(disk, group, config, clock, start)
    return Segments.recover(
        disk,
        group,
        config,
        clock,
        start_offset=start,
        synced=state.synced,
        term_at=lambda at: None if at < start else state.marks.term_of_record(at),
        has_holes=state.has_holes,
    )
