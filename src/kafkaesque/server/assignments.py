"""Checks where clients want replicas to be: on a single broker there is but one place."""

from collections.abc import Iterable, Sequence

from kafkaesque.errors import InvalidAssignment
from kafkaesque.types import NodeId


def check_assignments(assignments: Iterable[Sequence[NodeId]], node: NodeId) -> None:
    """Raise InvalidAssignment unless every partition is to be on this broker, and there once."""
    for brokers in assignments:
        if tuple(brokers) != (node,):
            raise InvalidAssignment(
                f"a partition cannot be on brokers {list(brokers)}; there is only broker {node}"
            )
