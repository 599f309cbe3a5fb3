"""How much of a backup is handled at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupLimits:
    """The sizes of a backup's parts."""

    chunk_bytes_max: int = 64 << 20
    """Begin a new file at this size: what an interrupted backup may have to fetch again."""

    fetch_bytes_max: int = 8 << 20
    """How much one fetch asks for: a few of the largest batches."""

    empty_fetches_max: int = 20
    """Fetches in a row that bring nothing of what should be there, before giving up."""

    fetch_wait_ms: int = 500
    """How long a broker may wait for records that should be there."""

    leader_waits_max: int = 100
    """How often to ask whether a topic that was just created can be written to."""

    leader_wait_ms: int = 100
    """The pause between two such questions."""
