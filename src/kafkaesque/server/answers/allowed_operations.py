"""Authorized operations. There is no access control: every client may do everything."""

from enum import IntEnum
from typing import Any, TypeVar, cast

from msgspec.structs import replace

T = TypeVar("T")

UNKNOWN = -(1 << 31)
"""Kafka's value for "not requested"."""


class Operation(IntEnum):
    """Kafka's numbers for operations; a response has one bit for each."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: Operation) -> int:
    return sum(1 << one for one in operations)


ON_TOPICS = _bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ON_GROUPS = _bits(
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ON_THE_CLUSTER = _bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
"""Kafka's operations on each kind of resource."""


def told(is_asked: bool, operations: int) -> int:  # noqa: FBT001
    """Return the operations as a response shows them."""
    return operations if is_asked else UNKNOWN


def added(part: T, **fields: int) -> T:
    """Return part of a response with its fields of authorized operations."""
    changed: T = replace(cast(Any, part), **fields)  # a declared message is a Struct: see wire
    return changed
