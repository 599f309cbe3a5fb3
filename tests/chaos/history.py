"""What clients did and what they saw, one JSON line for each operation.

Times are nanoseconds of the machine's monotonic clock, which all processes of one machine share, so
the order of operations of different processes is known. A value names its producer and is sent only
once.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

NO_PARTITION = -1
"""The partition of operations that concern several."""


class Outcome(StrEnum):
    """How a call ended for its caller."""

    OK = "ok"
    UNKNOWN = "unknown"
    """Timeouts, lost connections and everything else that leaves the outcome open."""
    FAILED = "failed"
    """Definitely refused: the record must never appear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """What all operations have: the client, the partition, the start and the end."""

    process: str
    partition: int
    begun: int
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Op):
    """A record was handed to a producer; those of one process and partition are in order."""

    value: str
    outcome: Outcome
    offset: int | None = None
    """The offset that the producer was given, if any."""
    is_idempotent: bool = True
    """Whether the producer is idempotent, so that the record is there once and in order."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll(Op):
    """A consumer received these records of one partition, in this order."""

    records: tuple[tuple[int, str], ...]
    group: str = ""
    """The group that it reads for, if any: together its members miss nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfRange(Op):
    """A consumer got "offset out of range"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(Op):
    """A consumer was assigned a partition, perhaps again: its position may have jumped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Op):
    """A consumer committed its position for a group."""

    group: str
    offset: int
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Op):
    """A client fetched the committed offset of a group; None means that there is none."""

    group: str
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Final(Op):
    """The final reading: everything in a partition, from its first to its last offset."""

    start: int
    end: int
    records: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction(Op):
    """Records were sent in one transaction, whose end was a commit, an abort, or unknown."""

    values: tuple[str, ...]
    outcome: Outcome
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible(Op):
    """The final reading of the transactions' topic: every committed value."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Put(Op):
    """A record was written to the queue, and the producer was told so."""

    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Op):
    """A member of a share group received records: their offsets, values and delivery counts."""

    since: int
    """When this consumer was made: what it received was handed out later."""
    records: tuple[tuple[int, str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept(Op):
    """A member of a share group accepted records."""

    values: tuple[str, ...]
    outcome: Outcome
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained(Op):
    """The queue was emptied in the end; the lag is the number of records left, or -1."""

    lag: int


KINDS: dict[str, type[Op]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(Send, Poll, OutOfRange, Assign, Commit, Committed, Final, Transaction, Visible),
        *(Put, Delivery, Accept, Drained),
    )
}


def to_line(op: Op) -> str:
    """Return an operation as one line of JSON."""
    return json.dumps({"op": type(op).__name__.lower(), **asdict(op)}, separators=(",", ":"))


def from_line(line: str) -> Op:
    """Return the operation of one line."""
    fields: dict[str, Any] = json.loads(line)
    kind = KINDS[fields.pop("op")]
    if "outcome" in fields:
        fields["outcome"] = Outcome(fields["outcome"])
    if "records" in fields:
        fields["records"] = tuple(map(tuple, fields["records"]))
    if "values" in fields:
        fields["values"] = tuple(fields["values"])
    return kind(**fields)


class Recorder:
    """Writes the history of one process; each operation is in the file at once."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def add(self, op: Op) -> None:
        """Append an operation."""
        self._file.write(to_line(op) + "\n")
        self._file.flush()


def load(files: Iterable[Path]) -> list[Op]:
    """Return the operations of all files; those of one process stay in order."""
    return [op for file in files for op in _of_file(file)]


def _of_file(file: Path) -> Iterator[Op]:
    # Read once: the process may still be writing, and line by line a torn last line would continue
    # as another one. Without a newline it is left out, as after a kill.
    whole, _, _ = file.read_text().rpartition("\n")
    for line in whole.split("\n") if whole else ():
        yield from_line(line)
