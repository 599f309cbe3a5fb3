"""What an unfinished restore has to remember: under which identity, and which topics are its own.

How far each partition is need not be remembered: nobody else writes to the topics, so their ends
say it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from kafkaesque.backup.manifest import read_sealed, write_sealed
from kafkaesque.client.producers import ProducerIdentity
from kafkaesque.errors import BackupError


@dataclass(slots=True, kw_only=True)
class OwnTopic:
    """A topic that this restore made, or found empty and took."""

    topic_id: str
    is_done: bool = False
    """It has all its records and its own settings."""


@dataclass(slots=True, kw_only=True)
class RestoreState:
    """The state of one restore of one backup into one cluster."""

    begun_ms: int
    """When the backup began, which tells it from others."""
    cluster_id: str | None
    """The cluster that is restored into."""
    producer_id: int
    producer_epoch: int
    topics: dict[str, OwnTopic] = field(default_factory=dict)
    """By their names there."""

    @property
    def producer(self) -> ProducerIdentity:
        """Who writes."""
        return ProducerIdentity(producer_id=self.producer_id, producer_epoch=self.producer_epoch)


class StateFile:
    """Where the state lies while a restore is not finished."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, begun_ms: int, cluster_id: str | None) -> RestoreState | None:
        """Return the state of an interrupted restore, None if there was none."""
        if not self.path.exists():
            return None
        state = read_sealed(self.path, RestoreState)
        if (state.begun_ms, state.cluster_id) != (begun_ms, cluster_id):
            raise BackupError(
                f"{self.path} is of the restore of another backup or into another cluster"
            )
        return state

    def write(self, state: RestoreState) -> None:
        """Write the state; raises BackupError where that cannot be done."""
        try:
            write_sealed(self.path, state)
        except OSError as error:
            raise BackupError(
                f"{self.path} cannot be written: {error.strerror}; name another file with --state"
            ) from error

    def remove(self) -> None:
        """Forget the state: the restore is finished."""
        self.path.unlink(missing_ok=True)


def default_state_path(root: Path, cluster_id: str | None) -> Path:
    """Return where the state of a restore into this cluster lies if nothing else is said."""
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", cluster_id or "unknown")
    return root / f"restore-{name}.json"
