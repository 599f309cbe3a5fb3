"""Commands to the machine that keeps the state of share groups, and their answers: plain values.

The leaders of data partitions give most of them: what they hand out and settle is durable once this
machine has written it.
"""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from kafkaesque.machines.decision import Command
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.types import Offset, Term


class Adopted(Struct, array_like=True, frozen=True, kw_only=True, tag=4):
    """The leader may serve, from this state."""

    records: tuple[MachineRecord, ...]
    """The newest record of each key of the partition, of all groups."""


class AdoptedBefore(Struct, array_like=True, frozen=True, kw_only=True, tag=9):
    """Nothing has changed: say from which offset on this leader's log is newer than that term."""

    term: Term
    """The newest term whose leader has adopted the partition."""


class Written(Struct, array_like=True, frozen=True, kw_only=True, tag=5):
    """The changes are durable."""


class StartSet(Struct, array_like=True, frozen=True, kw_only=True, tag=6):
    """The group begins again from its new start."""

    generation: int
    """What the partition's leader writes from now on has this generation."""


class ShareGroupDeleted(Struct, array_like=True, frozen=True, kw_only=True, tag=7):
    """The group has no state here."""

    places: tuple[Place, ...]
    """The partitions in which it had some."""


class ShareStart(Struct, array_like=True, frozen=True, kw_only=True):
    """Where a group begins in one partition."""

    offset: Offset
    """The first offset that is not done."""
    done: int
    """How many offsets above it are done."""
    term: Term
    """That of the leader that hands out; 0 before one did."""


class ShareStarts(Struct, array_like=True, frozen=True, kw_only=True, tag=8):
    """The starts of a group; partitions in which it has none are missing."""

    starts: Mapping[Place, ShareStart]


class Adopt(Command[Adopted], array_like=True, frozen=True, kw_only=True, tag=1):
    """The new leader of a data partition takes over the state of its groups.

    The state tells of records that leaders had in the terms up to the last one that was adopted. If
    the log has lost its end since, other records are at these offsets: what the state says of them
    is void. A leader that does not know what became of a write adopts again, with a higher serial:
    if the write is still on its way, it is refused from then on.
    """

    place: Place
    term: Term
    serial: int
    """Counts up in one term."""
    since: Term
    """The newest term in the leader's log before its own, or one that `AdoptedBefore` has named."""
    first: Offset
    """The first offset of a later term than that."""


class WriteState(Command[Written], array_like=True, frozen=True, kw_only=True, tag=2):
    """The leader of a data partition writes what has changed; all of it, or nothing."""

    place: Place
    term: Term
    serial: int
    """That of the newest `Adopt`."""
    generations: Mapping[str, int]
    """The generation of each group that the records are of."""
    records: tuple[MachineRecord, ...]
    opens: tuple[str, ...] = ()
    """The groups among them that begin here; all others must be known already."""


class SetStart(Command[StartSet], array_like=True, frozen=True, kw_only=True, tag=3):
    """An administrator lets a group begin again from an offset; nothing else of it remains."""

    place: Place
    group: str
    offset: Offset


class DeleteShareGroup(
    Command[ShareGroupDeleted], array_like=True, frozen=True, kw_only=True, tag=4
):
    """An administrator deletes a group, or only what it has done with some partitions."""

    group: str
    places: tuple[Place, ...] | None = None
    """None for all partitions."""


class ShareOffsets(Command[ShareStarts], array_like=True, frozen=True, kw_only=True, tag=5):
    """An administrator asks where a group begins."""

    group: str
    places: tuple[Place, ...] | None = None
    """None for all partitions."""


ShareCommand: TypeAlias = Adopt | WriteState | SetStart | DeleteShareGroup | ShareOffsets
