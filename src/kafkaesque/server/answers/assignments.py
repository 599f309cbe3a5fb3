"""Checks the replica assignments that clients request."""

from collections.abc import Collection, Iterable, Sequence

from kafkaesque.machines.catalog.catalog_errors import InvalidAssignment
from kafkaesque.types import NodeId


def check_assignments(assignments: Iterable[Sequence[NodeId]], nodes: Collection[NodeId]) -> None:
    """Raise InvalidAssignment unless each partition names existing brokers, none twice."""
    for brokers in assignments:
        if not brokers or len(set(brokers)) < len(brokers) or not set(brokers) <= set(nodes):
            known = ", ".join(str(node) for node in sorted(nodes))
            raise InvalidAssignment(
                f"a partition cannot be on brokers {list(brokers)}; the brokers are {known}"
            )
