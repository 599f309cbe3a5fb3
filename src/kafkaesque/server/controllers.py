"""Which brokers clients may take for the controller, and how often one of them was lost.

An admin client of librdkafka waits for the controller that it heard of, for minutes, and asks for
another one only when it has connected again (`rd_kafka_broker_connect_up`). From which broker it
heard, and when, is not known here: so when a broker is lost that has led the catalog, all idle
connections from before are closed.

The brokers that are left do so one after the other. A client without any connection forgets all
brokers but those that it was configured with (KIP-1102), and that may be the lost one alone.
"""

from collections import deque

from kafkaesque.broker.broker import CATALOG_GROUP, Broker
from kafkaesque.broker.presence import present
from kafkaesque.types import NodeId

LOOKS_APART = 3
"""Between the closing of one broker and of the next, in seconds: time to connect again and ask."""


class Controllers:
    """Those that have led the catalog while this broker looked; `look` is called now and then."""

    def __init__(self, broker: Broker) -> None:
        self.losses = 0
        """How often one of them was lost."""
        self.due = 0
        """For how many of them it is this broker's turn to close connections from before."""
        self._broker = broker
        self._known: set[NodeId] = set()
        self._looks = 0
        self._turns: deque[int] = deque()
        """In which look it is this broker's turn, for each that is lost."""

    def look(self) -> None:
        """Count those that are lost, and learn who leads now."""
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
        """Return how many brokers that are left come before this one."""
        return sum(node < self._broker.node for node in present(self._broker))
