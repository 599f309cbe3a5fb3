"""Limits on how much of a backup is handled at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupLimits:
    """The sizes of a backup's parts."""

    chunk_bytes_max: int = 64 << 20
    """Start a new file at this size: what an interrupted backup may have to fetch again."""

    fetch_bytes_max: int = 8 << 20
    """The size of one fetch: a few of the largest batches."""

    empty_fetches_max: int = 20
    """Give up after this many fetches in a row without the expected records."""

    fetch_wait_ms: int = 500
    """How long a broker may wait for expected records."""

    leader_waits_max: int = 100
    """How often to check whether a newly created topic is writable."""

    leader_wait_ms: int = 100
    """The pause between two such checks."""
