"""Kills leaders and coordinators within the transactions of a test, and restarts them."""

from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId

Leads = tuple[str, int]
"""A topic and a partition of it."""


class Killer:
    """Has one broker down at a time; `plan` says whose leader dies from which transaction on.

    `relieve` is called between transactions, because on a busy machine the start of a broker may
    take longer than a transaction may stay open.
    """

    def __init__(self, cluster: Cluster, plan: dict[int, Leads]) -> None:
        self._cluster = cluster
        self._left = dict(plan)
        self.killed: list[NodeId] = []

    @property
    def is_done(self) -> bool:
        """Whether all planned kills are done."""
        return not self._left

    def relieve(self, number: int) -> None:
        """Restart the broker killed last, if another is to die in this transaction."""
        if self._due(number) is not None:
            self.relieve_all()

    def relieve_all(self) -> None:
        """Restart the broker killed last."""
        if self.killed and not self._cluster.process(self.killed[-1]).is_running:
            self._cluster.restart(self.killed[-1])

    def strike(self, number: int) -> bool:
        """Kill, if it is time to; return whether it was."""
        due = self._due(number)
        if due is None:
            return False
        topic, partition = self._left.pop(due)
        self.killed.append(self._cluster.leader(topic, partition))
        self._cluster.kill(self.killed[-1])
        return True

    def _due(self, number: int) -> int | None:
        first = min(self._left, default=number + 1)
        return first if first <= number else None
