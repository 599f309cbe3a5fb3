"""Operations on one setting, and the editing of list settings."""

from enum import IntEnum


class Operation(IntEnum):
    """An operation on one setting, by Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def edited(items: str, value: str, operation: Operation) -> str:
    """Return a list with items added or removed."""
    named = [part.strip() for part in value.split(",")]
    kept = [item for item in items.split(",") if item and item not in named]
    return ",".join([*kept, *named] if operation is Operation.APPEND else kept)
