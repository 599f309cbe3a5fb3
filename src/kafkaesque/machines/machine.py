"""The one shape of all replicated state: decide, then apply.

A machine's methods that *decide* look at the state and return records without changing it; `apply`
takes one record and is the only thing that changes it. Every record has a key and says all that is
to be known under it, so the newest record of each key is enough to rebuild the machine: that is why
its log can be compacted, and why a snapshot is nothing but records.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class MachineRecord(NamedTuple):
    """What a machine writes: the newest under a key holds; without a value the key is gone."""

    key: bytes
    value: bytes | None


class Machine(Protocol):
    """State that follows from records."""

    def apply(self, record: MachineRecord) -> None:
        """Take one record; raises NewerFormat for one that this version does not know."""
        ...

    def records(self) -> Iterable[MachineRecord]:
        """Return records that rebuild the state as it is now, when applied to a fresh machine."""
        ...
