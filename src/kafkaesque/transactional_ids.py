"""Structured transactional ids, and the part of an id that selects its coordinator.

Each task attempt of a batch has its own transaction, under an id of seven parts:

    spark/<query>/<sink>/<batch>/<driver epoch>/<task>/<attempt>

A batch is decided by one record, so all its ids must lie on one partition of the coordinators'
topic. So an id of a reserved kind (`spark`) is hashed by its first two parts alone: all ids of one
query share a partition. Any other id is hashed as a whole, as in Kafka.
"""

from typing import NamedTuple

RESERVED_KINDS = frozenset({"spark"})
"""First parts of ids that are hashed by their first two parts."""

KIND = "spark"
PARTS = 7
NUMBER_DIGITS_MAX = 18
"""Any number of this many digits fits into 64 bits."""

NAME_BYTES_MAX = 400
"""The longest name of a query or a sink; two such names still fit into the longest id."""


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
    """Return the parsed id of a batch's transaction; None for any other id."""
    parts = transactional_id.split("/")
    if len(parts) != PARTS or parts[0] != KIND:
        return None
    query, sink = parts[1:3]
    if not (is_name(query) and is_name(sink) and all(_is_number(part) for part in parts[3:])):
        return None
    batch, driver_epoch, task, attempt = map(int, parts[3:])
    return BatchTransactionId(query, sink, batch, driver_epoch, task, attempt)


def is_name(text: str) -> bool:
    """Return whether this is a valid name of a query or a sink."""
    return 0 < len(text.encode()) <= NAME_BYTES_MAX and "/" not in text


def query_key(query: str) -> str:
    """Return the key that locates the coordinator of a query."""
    return f"{KIND}/{query}"


def sink_key(query: str, sink: str) -> str:
    """Return the common prefix of all ids of one sink."""
    return f"{KIND}/{query}/{sink}"


def hashed_part(transactional_id: str) -> str:
    """Return the part of an id that decides which partition its coordinator is on."""
    kind, slash, rest = transactional_id.partition("/")
    if not slash or kind not in RESERVED_KINDS:
        return transactional_id
    return f"{kind}/{rest.partition('/')[0]}"


def _is_number(text: str) -> bool:
    """Return whether this is a canonical number, so that one number has one id."""
    is_digits = text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX
    return is_digits and (text == "0" or text[0] != "0")
