"""Committed batches for a replica whose own are damaged: the request and its answer.

They travel between brokers as the data of a call (`docs/reference/format-link.md`). The requester
sets the pace, one piece at a time, and the answering broker keeps no state. A broker whose version
does not know the call refuses it, and another is asked.
"""

from typing import Annotated, TypeAlias

import msgspec

from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.verified_reads import read_sound
from kafkaesque.errors import NotLeader
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown
from kafkaesque.record.view import peek_span, split_batches
from kafkaesque.types import GroupId, NodeId, Offset

PIECE_BYTES_MAX = 4 << 20
"""The most bytes per piece, whatever was requested, unless the first batch is larger."""

_Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class RangeAsked(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Requests a group's batches from `first` on, before `end`."""

    source: NodeId
    """The requesting broker."""

    group: GroupId
    first: _Offset
    end: _Offset
    bytes_max: _Offset


class RangePiece(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """All batches from the requested offset up to `end`, as they are in the log."""

    end: Offset
    has_holes: bool
    """Whether offsets may be missing, because the log is compacted."""

    compacted_to: Offset
    """Changes when the log is compacted: pieces from before and after do not fit together."""

    data: bytes


class RangeRefused(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """This broker cannot provide the batches, and why."""

    reason: str


RangeAnswer: TypeAlias = RangePiece | RangeRefused
Told: TypeAlias = RangeAnswer | Refused | Unknown
"""The result of a request: an answer, or that there is none."""


def give_range(replica: Replica | None, asked: RangeAsked) -> RangeAnswer:
    """Answer with what this replica holds that is committed, durable and undamaged."""
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
        # It may have refused to lead because of the damage, which will soon be gone.
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
        return "its own copy is being refilled"
    if not log.start.offset <= asked.first < asked.end:
        return f"its log starts at offset {log.start.offset}"
    if asked.end > replica.settled_offset:
        return f"offset {asked.end} is not known to be committed there"
    if not is_whole(replica, asked.first, asked.end):
        return "its own copy is damaged there"
    return None


def is_whole(replica: Replica, first: Offset, end: Offset) -> bool:
    """Return whether no damage is known in the segments of [first, end).

    A log with holes is given whole or not at all: mixing two copies must not bring back a record
    that a later one deleted.
    """
    found = replica.damage.found
    if replica.has_holes and found:
        return False
    for one in found:
        segment, segment_end = replica.log.segments.span(one.offset)
        if segment.base < end and first < segment_end:
            return False
    return True
