"""The one shape of all replicated state: decide, then apply.

A machine's methods that *decide* look at the state and return records without changing it; `apply`
takes one record and is the only one that changes it. Every record has a key and holds everything
known under it, so the newest record of each key is enough to rebuild the machine. That is why its
log can be compacted, and why a snapshot is nothing but records.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class MachineRecord(NamedTuple):
    """What a machine writes: the newest record of a key holds; without a value the key is gone."""

    key: bytes
    value: bytes | None


class Machine(Protocol):
    """State that follows from records."""

    def apply(self, record: MachineRecord) -> None:
        """Take one record; raises NewerFormat for one that this version does not know."""
        ...

    def records(self) -> Iterable[MachineRecord]:
        """Return records that rebuild the current state when applied to a new machine."""
        ...
