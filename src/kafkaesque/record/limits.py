"""What a batch may hold, with the reason for each limit."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLimits:
    """What a producer may send inside one batch."""

    decompressed_bytes_max: int = 64 << 20
    """Largest decompressed batch: above any sane batch, small enough for memory."""

    decompression_ratio_max: int = 200
    """Compressed zeros reach 1,000 and more; text and logs stay below 50."""

    decompression_always_bytes: int = 1 << 20
    """The ratio is not checked up to this size: the same records would be accepted uncompressed."""

    records_max: int = 1 << 18
    """Records in one batch: 1 MiB has room for 150,000; each takes some 200 bytes as an object."""

    headers_max: int = 1 << 18
    """Headers in one batch, all records together: 2 bytes packed, some 100 as an object."""
