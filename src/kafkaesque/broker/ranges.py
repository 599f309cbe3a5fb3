"""Committed batches for a replica whose own are damaged: what it asks, and what it is given.

They travel between brokers as the data of a call (`docs/reference/format-link.md`). Whoever asks
sets the pace, one piece at a time, and whoever answers keeps nothing of it in mind. A broker of a
version that does not know the call refuses it, and another is asked.
"""

from typing import Annotated, TypeAlias

import msgspec

from kafkaesque.broker.replica import Replica
from kafkaesque.broker.sound_reads import read_sound
from kafkaesque.errors import NotLeader, PartitionOffline
from kafkaesque.machines.catalog_commands import Refused, Unknown
from kafkaesque.record.view import peek_span, split_batches
from kafkaesque.types import GroupId, NodeId, Offset

PIECE_BYTES_MAX = 4 << 20
"""Nobody is given more at once, whatever was asked for, unless the first batch is larger."""

_Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class RangeAsked(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Give me batches from `first` on, before `end`, of a group."""

    source: NodeId
    """Who asks."""

    group: GroupId
    first: _Offset
    end: _Offset
    bytes_max: _Offset


class RangePiece(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """All batches that there are from what was asked for up to `end`, as they lie in the log."""

    end: Offset
    has_holes: bool
    """Whether offsets may be missing, because the log is compacted."""

    compacted_to: Offset
    """Moves when the log is compacted: pieces from before and after do not make one log."""

    data: bytes


class RangeRefused(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """There is nothing to be had here, and why."""

    reason: str


RangeAnswer: TypeAlias = RangePiece | RangeRefused
Told: TypeAlias = RangeAnswer | Refused | Unknown
"""What comes back of a question: an answer, or that there is none."""


def give_range(replica: Replica | None, asked: RangeAsked) -> RangeAnswer:
    """Answer from what this replica holds, committed and durable, and without damage."""
    refusal = _refusal(replica, asked)
    if refusal is not None:
        return RangeRefused(reason=refusal)
    assert replica is not None
    try:
        data = _read(replica, asked)
    except (NotLeader, PartitionOffline):  # found by this read, and noted
        return RangeRefused(reason="its own copy is damaged there")
    end = asked.end
    if data:
        for view in split_batches(data):
            end = peek_span(view.data)[1]
    if replica.raft.leadership is not None and end == asked.end:
        # It may have refused to lead because of the damage, and soon will not.
        replica.raft.leadership.failed_transfers.discard(asked.source)
    return RangePiece(
        end=end,
        has_holes=replica.has_holes,
        compacted_to=replica.log.segments.compacted_to,
        data=bytes(data),
    )


def _read(replica: Replica, asked: RangeAsked) -> memoryview:
    bytes_max = min(asked.bytes_max, PIECE_BYTES_MAX)
    return read_sound(replica, asked.first, bytes_max, first_always=True, end=asked.end)


def _refusal(replica: Replica | None, asked: RangeAsked) -> str | None:
    if replica is None or replica.error is not None or replica.log.is_closed:
        return "it has no such replica"
    log = replica.log
    if replica.raft.is_recovering:
        return "it is being filled itself"
    if not log.start.offset <= asked.first < asked.end:
        return f"its log begins at offset {log.start.offset}"
    if asked.end > replica.settled_offset:
        return f"it does not know offset {asked.end} to be committed"
    if not is_whole(replica, asked.first, asked.end):
        return "its own copy is damaged there"
    return None


def is_whole(replica: Replica, first: Offset, end: Offset) -> bool:
    """Tell whether no damage is known in the segments of [first, end).

    A log with holes is given whole or not at all: a record that was deleted by a later one must not
    come back because the two are taken from different copies.
    """
    found = replica.damage.found
    if replica.has_holes and found:
        return False
    for one in found:
        segment, segment_end = replica.log.segments.span(one.offset)
        if segment.base < end and first < segment_end:
            return False
    return True
