"""What goes into and comes out of the state of a share group on one partition: plain values."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from kafkaesque.types import Offset


class Ack(IntEnum):
    """What a member says of an offset that it holds; the numbers are Kafka's."""

    GAP = 0
    """There is no record."""
    ACCEPT = 1
    RELEASE = 2
    """It is to be delivered again."""
    REJECT = 3
    """It is done, and never to be delivered again."""
    RENEW = 4
    """The member needs more time."""


class AckBatch(NamedTuple):
    """A range of offsets, both included, and one kind for all of them or one for each."""

    first: Offset
    last: Offset
    kinds: Sequence[Ack]


class Acquired(Struct, frozen=True, gc=False):
    """A range of offsets, both included, that a member now holds."""

    first: Offset
    last: Offset
    count: int
    """The delivery that this is, from 1."""


class ShareLimits(Struct, frozen=True, kw_only=True):
    """Settings of one share group on one partition."""

    lock_ms: int = 30_000
    """How long a member may hold what it took, as in Kafka."""
    delivery_max: int = 5
    """A record is delivered at most this often, as in Kafka."""
    window: int = 2_000
    """Offsets from the start to the end of what was handed out, as in Kafka."""
    locks_max: int = 2_000
    """Offsets that all members together may hold."""


class ShareView(Struct, frozen=True, kw_only=True):
    """The state of deliveries at one time, for administrators."""

    start: Offset
    """The first offset that is not done."""
    next: Offset
    """The first offset that was never handed out."""
    released: int
    """How many offsets are ready again."""
    locked: int
    """How many offsets members hold."""
    done: int
    """How many offsets above the start are done."""
    held_ms_max: int | None
    """How long the oldest lock has been held; None if there is none."""
    holders: Mapping[str, int]
    """How many offsets each member holds."""
