"""What can be done with one setting, and with those that are lists."""

from enum import IntEnum


class Operation(IntEnum):
    """What is to be done with one setting, by Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def edited(items: str, value: str, operation: Operation) -> str:
    """Return a list with items added to it or taken from it."""
    named = [part.strip() for part in value.split(",")]
    kept = [item for item in items.split(",") if item and item not in named]
    return ",".join([*kept, *named] if operation is Operation.APPEND else kept)
