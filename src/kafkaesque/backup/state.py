"""What an unfinished restore remembers: its producer identity, and its own topics.

The progress of each partition need not be remembered: no other producer writes to the topics, so
their ends show it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from kafkaesque.backup.errors import BackupError
from kafkaesque.backup.manifest import read_sealed, write_sealed
from kafkaesque.client.producers import ProducerIdentity


@dataclass(slots=True, kw_only=True)
class OwnTopic:
    """A topic that this restore created, or found empty and took over."""

    topic_id: str
    is_done: bool = False
    """Whether it has all its records and its own settings."""


@dataclass(slots=True, kw_only=True)
class RestoreState:
    """The state of one restore of one backup into one cluster."""

    begun_ms: int
    """When the backup started, which identifies it."""
    cluster_id: str | None
    """The target cluster."""
    producer_id: int
    producer_epoch: int
    topics: dict[str, OwnTopic] = field(default_factory=dict)
    """By their names in the target."""

    @property
    def producer(self) -> ProducerIdentity:
        """The producer of the restored records."""
        return ProducerIdentity(producer_id=self.producer_id, producer_epoch=self.producer_epoch)


class StateFile:
    """The file of the state while a restore is unfinished."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, begun_ms: int, cluster_id: str | None) -> RestoreState | None:
        """Return the state of an interrupted restore, or None."""
        if not self.path.exists():
            return None
        state = read_sealed(self.path, RestoreState)
        if (state.begun_ms, state.cluster_id) != (begun_ms, cluster_id):
            raise BackupError(
                f"{self.path} belongs to a restore of another backup or into another cluster"
            )
        return state

    def write(self, state: RestoreState) -> None:
        """Write the state; raises BackupError if that fails."""
        try:
            write_sealed(self.path, state)
        except OSError as error:
            raise BackupError(
                f"{self.path} cannot be written: {error.strerror}; name another file with --state"
            ) from error

    def remove(self) -> None:
        """Remove the state: the restore is finished."""
        self.path.unlink(missing_ok=True)


def default_state_path(root: Path, cluster_id: str | None) -> Path:
    """Return the default path of the state of a restore into this cluster."""
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", cluster_id or "unknown")
    return root / f"restore-{name}.json"
