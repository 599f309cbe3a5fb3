"""Transactional ids that say something, and which part of an id decides where it is coordinated.

Each task attempt of a batch has its own transaction, under an id of seven parts:

    spark/<query>/<sink>/<batch>/<driver epoch>/<task>/<attempt>

A batch is decided by one record, so all its ids must lie on one partition of the coordinators'
topic. Therefore an id of a reserved kind (`spark`) is hashed by its first two parts alone:
everything of one query lies together. Any other id is hashed as a whole, as Kafka does.
"""

from typing import NamedTuple

RESERVED_KINDS = frozenset({"spark"})
"""First parts of ids that are hashed by their first two parts."""

KIND = "spark"
PARTS = 7
NUMBER_DIGITS_MAX = 18
"""Any number of so many digits fits into 64 bits."""

NAME_BYTES_MAX = 400
"""The longest name of a query or a sink; both together leave room in the longest id."""


class BatchTransactionId(NamedTuple):
    """The transaction of one task attempt, for one batch of a query's sink."""

    query: str
    sink: str
    batch: int
    driver_epoch: int
    task: int
    attempt: int

    def __str__(self) -> str:
        return "/".join((KIND, *map(str, self)))


def parse(transactional_id: str) -> BatchTransactionId | None:
    """Return what an id of a batch's transaction says; None for every other id."""
    parts = transactional_id.split("/")
    if len(parts) != PARTS or parts[0] != KIND:
        return None
    query, sink = parts[1:3]
    if not (is_name(query) and is_name(sink) and all(_is_number(part) for part in parts[3:])):
        return None
    batch, driver_epoch, task, attempt = map(int, parts[3:])
    return BatchTransactionId(query, sink, batch, driver_epoch, task, attempt)


def is_name(text: str) -> bool:
    """Return whether a query or a sink may have this name."""
    return 0 < len(text.encode()) <= NAME_BYTES_MAX and "/" not in text


def query_key(query: str) -> str:
    """Return the key under which the coordinator of a query is found."""
    return f"{KIND}/{query}"


def sink_key(query: str, sink: str) -> str:
    """Return what all ids of one sink begin with."""
    return f"{KIND}/{query}/{sink}"


def hashed_part(transactional_id: str) -> str:
    """Return the part of an id that decides which partition its coordinator is on."""
    kind, slash, rest = transactional_id.partition("/")
    if not slash or kind not in RESERVED_KINDS:
        return transactional_id
    return f"{kind}/{rest.partition('/')[0]}"


def _is_number(text: str) -> bool:
    """Return whether this is a number as we write it: one number has one id."""
    is_digits = text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX
    return is_digits and (text == "0" or text[0] != "0")
