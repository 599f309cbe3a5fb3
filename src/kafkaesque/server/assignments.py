"""Checks where clients want replicas to be."""

from collections.abc import Collection, Iterable, Sequence

from kafkaesque.errors import InvalidAssignment
from kafkaesque.types import NodeId


def check_assignments(assignments: Iterable[Sequence[NodeId]], nodes: Collection[NodeId]) -> None:
    """Raise InvalidAssignment unless every partition is to be on brokers that are there, once."""
    for brokers in assignments:
        if not brokers or len(set(brokers)) < len(brokers) or not set(brokers) <= set(nodes):
            known = ", ".join(str(node) for node in sorted(nodes))
            raise InvalidAssignment(
                f"a partition cannot be on brokers {list(brokers)}; there are only {known}"
            )
