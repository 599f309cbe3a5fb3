"""How a broker tells that it cannot go on, and when it can."""

from collections.abc import Callable
from typing import TypeGuard

from kafkaesque.errors import CorruptLog, LogError, StateLost


def once(failed: Callable[[LogError], None]) -> Callable[[LogError], None]:
    """Tell of the first failure only: who cannot read a log can do so in two ways."""
    told: list[LogError] = []

    def tell(error: LogError) -> None:
        if not told:
            told.append(error)
            failed(error)

    return tell


def can_be_mended(error: LogError) -> TypeGuard[CorruptLog]:
    """Tell whether what keeps a machine from reading its log is damage in a segment.

    Others have what is lost of it, and this replica need only not lead. A state that is gone, or
    records of a later version, are another matter.
    """
    return isinstance(error, CorruptLog) and not isinstance(error, StateLost)
