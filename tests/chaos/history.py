"""What clients did and what they saw, one JSON line for each operation.

Times are nanoseconds of the machine's monotonic clock, which all processes of one machine share, so
that "this had ended before that began" can be said across processes. A value is sent once: it names
its producer, and is never sent again by anybody.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

NO_PARTITION = -1
"""Of operations that are about several."""


class Outcome(StrEnum):
    """How a call ended for its caller."""

    OK = "ok"
    UNKNOWN = "unknown"
    """Timeouts, lost connections, whatever leaves open whether it was done."""
    FAILED = "failed"
    """Refused for sure: it must never show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """What all operations have: whose it was, in which partition, from when to when."""

    process: str
    partition: int
    begun: int
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Op):
    """A record was handed to a producer; those of one process and partition stand in order."""

    value: str
    outcome: Outcome
    offset: int | None = None
    """Where it went, if the producer was told."""
    is_idempotent: bool = True
    """Whether the producer promises that it is there once, and in order."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll(Op):
    """A consumer was given these records of one partition, in this order."""

    records: tuple[tuple[int, str], ...]
    group: str = ""
    """The group for which it reads, if there is one: together its members miss nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfRange(Op):
    """A consumer was told that its place does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(Op):
    """A consumer was given a partition, anew or for the first time: its place may have jumped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Op):
    """A consumer committed its place for a group."""

    group: str
    offset: int
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Op):
    """Someone asked for the place of a group; None is "there is none"."""

    group: str
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Final(Op):
    """When all was over: everything in a partition, read from its first to its last offset."""

    start: int
    end: int
    records: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction(Op):
    """Records were sent in one transaction, which was ended: committed, aborted or not known."""

    values: tuple[str, ...]
    outcome: Outcome
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible(Op):
    """When all was over: every value of the transactions' topic that is committed."""

    values: tuple[str, ...]


KINDS: dict[str, type[Op]] = {
    kind.__name__.lower(): kind
    for kind in (Send, Poll, OutOfRange, Assign, Commit, Committed, Final, Transaction, Visible)
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
        fields["records"] = tuple((offset, value) for offset, value in fields["records"])
    if "values" in fields:
        fields["values"] = tuple(fields["values"])
    return kind(**fields)


class Recorder:
    """Writes the history of one process; what is recorded is in the file at once."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def add(self, op: Op) -> None:
        """Append an operation."""
        self._file.write(to_line(op) + "\n")
        self._file.flush()


def load(files: Iterable[Path]) -> list[Op]:
    """Return the operations of all files; those of one process stay in their order."""
    return [op for file in files for op in _of_file(file)]


def _of_file(file: Path) -> Iterator[Op]:
    # Read once: the process may still be writing, and line by line a torn last line would continue
    # as another one. Without a newline it is left out, as after a kill.
    whole, _, _ = file.read_text().rpartition("\n")
    for line in whole.split("\n") if whole else ():
        yield from_line(line)
