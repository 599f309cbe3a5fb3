"""Reads that verify what the disk returns, so that clients need not.

On damage the replica gives up leadership if others can lead. A sole replica returns the sound part
before the damage, and an error at it: never one that makes clients skip what is missing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.errors import LogError, NotLeader
from kafkaesque.log.errors import CorruptLog
from kafkaesque.record.view import first_damage, peek_size, split_batches
from kafkaesque.types import Offset, Term


def read_sound(
    replica: Replica, offset: Offset, bytes_max: int, *, first_always: bool, end: Offset | None
) -> memoryview:
    """Return whole batches from disk, those before `end`; raises NotLeader, PartitionOffline."""
    segments = replica.log.segments
    with damage_noted(replica, offset):
        try:
            data = segments.read(offset, bytes_max, first_always=first_always)
        except CorruptLog:
            if not replica.is_alone:
                raise
            data = segments.read(offset, 1)  # the damage may lie behind the first batch
    read = data
    if end is not None:  # data still to be cut does not count
        data = cut_at(read, end)

    def term_at(at: Offset) -> Term:
        return replica.log.term_at(replica.log.index_at(at))

    damage = first_damage(data, offset, term_at, has_holes=replica.has_holes)
    if damage is None and end is not None and not replica.has_holes:
        damage = _misplaced(data, read, offset, end)
    if damage is None:
        return data
    position, at, reason = damage
    error = CorruptLog(f"{replica.group}, read from offset {offset},", position, reason)
    replica.damaged(error, at)
    if position == 0 or not replica.is_alone:
        raise offline(replica, error)
    return data[:position]


def _misplaced(
    data: memoryview, read: memoryview, offset: Offset, end: Offset
) -> tuple[int, Offset, str] | None:
    """Return where a batch was left out although the kept ones do not reach `end`, if any."""
    reached = [view.end_offset for view in split_batches(data)][-1] if data else offset
    if len(data) == len(read) or reached >= end:
        return None
    base, _ = peek_size(read, len(data))
    return len(data), reached, f"the batch of offset {base} is here"


@contextmanager
def damage_noted(replica: Replica, offset: Offset | None = None) -> Iterator[None]:
    """Look something up on disk; on damage, raise the error for clients."""
    try:
        yield
    except CorruptLog as error:
        replica.damaged(error, offset)
        raise offline(replica, error) from error


def offline(replica: Replica, error: LogError) -> PartitionOffline | NotLeader:
    """Return the client error for a failed replica: where there are others, one of them leads.

    At any other code aiokafka keeps asking the same broker.
    """
    if replica.is_alone:
        return PartitionOffline(f"this partition is offline here: {error}")
    return NotLeader(replica.raft.leader)


def cut_at(data: memoryview, end: Offset) -> memoryview:
    """Leave out the batches at and after `end`."""
    position = 0
    while position < len(data):
        base, size = peek_size(data, position)
        if base >= end:
            break
        position += size
    return data[:position]
