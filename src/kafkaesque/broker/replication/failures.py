"""How a broker reports that it cannot continue, and when it can."""

from collections.abc import Callable
from typing import TypeGuard

from kafkaesque.errors import LogError
from kafkaesque.log.errors import CorruptLog


class StateLost(CorruptLog):
    """All snapshots of the state at the start of a machine's log are missing or damaged."""


class PartitionOffline(LogError):
    """The partition's log is unusable until an operator intervenes; other partitions are served."""


def once(failed: Callable[[LogError], None]) -> Callable[[LogError], None]:
    """Report only the first failure: a machine may fail to read its log in two ways."""
    told: list[LogError] = []

    def tell(error: LogError) -> None:
        if not told:
            told.append(error)
            failed(error)

    return tell


def can_be_mended(error: LogError) -> TypeGuard[CorruptLog]:
    """Return whether a machine's log is unreadable because of damage in a segment.

    Other replicas have the lost part, and this one need only not lead. A lost state, or records of
    a later version, cannot be mended this way.
    """
    return isinstance(error, CorruptLog) and not isinstance(error, StateLost)
