"""Which brokers clients may take for the controller, and how often one of them was lost.

An admin client of librdkafka waits for the controller that it heard of, for minutes, and asks for
another one only when it has connected again (`rd_kafka_broker_connect_up`). From which broker it
heard, and when, is not known here: so when a broker is lost that has led the catalog, all idle
connections from before are closed.
"""

from kafkaesque.broker.broker import CATALOG_GROUP, Broker
from kafkaesque.types import NodeId


class Controllers:
    """Those that have led the catalog while this broker looked; `look` is called now and then."""

    def __init__(self, broker: Broker) -> None:
        self.losses = 0
        """How often one of them was lost."""
        self._broker = broker
        self._known: set[NodeId] = set()

    def look(self) -> None:
        """Count those that are lost, and learn who leads now."""
        broker = self._broker
        others = self._known - {broker.node}
        lost = {node for node in others if not broker.replicas.is_reachable(node)}
        self.losses += len(lost)
        self._known -= lost
        leader = broker.leader_of(CATALOG_GROUP).node
        if leader is not None and broker.replicas.is_reachable(leader):
            self._known.add(leader)
