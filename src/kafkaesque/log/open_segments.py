"""Opens the segments of one group after any stop, from its journal and its disk."""

from kafkaesque.clock import Clock
from kafkaesque.config import LogConfig
from kafkaesque.log.disk import Disk
from kafkaesque.log.journal_records import GroupState
from kafkaesque.log.segments import Segments
from kafkaesque.log.segments_recovery import discard_segments
from kafkaesque.log.snapshot import drop_beyond
from kafkaesque.log.snapshot_pieces import remove_parts
from kafkaesque.types import GroupId


def recover_segments(
    group: GroupId, state: GroupState, disk: Disk, config: LogConfig, clock: Clock
) -> Segments:
    """Return the segments that the journal describes; raises CorruptLog if they do not match it.

    Snapshots beyond their end, and incomplete ones, are removed.
    """
    start = state.marks.start.offset
    remove_parts(disk, group)
    if state.is_reset:
        discard_segments(disk, group, only_empty=False)  # a crash interrupted the reset
        segments = Segments.create(disk, group, config, clock, start)
        drop_beyond(disk, group, segments.end_offset)
        return segments
    segments = Segments.recover(
        disk,
        group,
        config,
        clock,
        start_offset=start,
        synced=state.synced,
        term_at=lambda at: None if at < start else state.marks.term_of_record(at),
        has_holes=state.has_holes,
    )
    drop_beyond(disk, group, segments.end_offset)
    return segments
