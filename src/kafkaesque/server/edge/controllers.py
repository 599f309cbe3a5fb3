"""Brokers that clients may take for the controller, and how often one was lost.

An admin client of librdkafka waits minutes for the controller that it heard of, and asks for
another only after it has reconnected (`rd_kafka_broker_connect_up`). This broker does not know from
which broker it heard, or when: so when a broker that has led the catalog is lost, all idle
connections from before are closed.

The remaining brokers do so one after the other. A client without any connection forgets all brokers
but its configured ones (KIP-1102), and that may be the lost one alone.
"""

from collections import deque

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.presence import present
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.types import NodeId

LOOKS_APART = 3
"""Seconds between one broker's closing and the next's: time to reconnect and ask."""


class Controllers:
    """The brokers seen leading the catalog; `look` is called about once a second."""

    def __init__(self, broker: Broker) -> None:
        self.losses = 0
        """How many of them were lost so far."""
        self.due = 0
        """Losses for which it is this broker's turn to close older connections."""
        self._broker = broker
        self._known: set[NodeId] = set()
        self._looks = 0
        self._turns: deque[int] = deque()
        """The look at which it is this broker's turn, for each loss."""

    def look(self) -> None:
        """Count lost controllers, and record the current one."""
        self._looks += 1
        broker = self._broker
        others = self._known - {broker.node}
        lost = {node for node in others if not broker.replicas.is_reachable(node)}
        self.losses += len(lost)
        self._turns.extend(self._looks + self._place() * LOOKS_APART for _ in lost)
        while self._turns and self._turns[0] <= self._looks:
            self._turns.popleft()
            self.due += 1
        self._known -= lost
        leader = broker.leader_of(CATALOG_GROUP).node
        if leader is not None and broker.replicas.is_reachable(leader):
            self._known.add(leader)

    def _place(self) -> int:
        """Return how many present brokers precede this one."""
        return sum(node < self._broker.node for node in present(self._broker))
