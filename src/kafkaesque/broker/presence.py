"""Which brokers of the cluster are there, as far as one of them can tell."""

from kafkaesque.broker.broker import Broker
from kafkaesque.types import NodeId


def present(broker: Broker) -> frozenset[NodeId]:
    """Return the registered brokers that can be reached from this one, itself included.

    Whoever reaches no majority of them is cut off itself, and what it sees says nothing of the
    others: then all are named, so that a client does not forget where the rest of the cluster is.
    """
    known = {node for node, one in broker.catalog.brokers.items() if one.host} | {broker.node}
    there = {node for node in known if broker.replicas.is_reachable(node)}
    return frozenset(there if 2 * len(there) > len(known) else known)


def rack_of(broker: Broker, node: NodeId) -> str:
    """Return where a broker stands; empty for nowhere in particular."""
    known = broker.catalog.brokers.get(node)
    return "" if known is None else known.rack
