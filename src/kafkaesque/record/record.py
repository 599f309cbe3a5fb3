"""One record, as a value."""

from msgspec import Struct

from kafkaesque.types import Offset


class Record(Struct, frozen=True, kw_only=True):
    """One record; a missing key or value differs from an empty one."""

    offset: Offset
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """In the producer's order; keys may repeat."""
