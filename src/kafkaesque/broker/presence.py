"""Which brokers of the cluster are there, as far as one of them can tell."""

from kafkaesque.broker.broker import CATALOG_GROUP, Broker
from kafkaesque.types import NodeId


def present(broker: Broker) -> frozenset[NodeId]:
    """Return the registered brokers that can be reached from this one, itself included.

    Whoever reaches no majority of them is cut off itself, and what it sees says nothing of the
    others: then all are named, so that a client does not forget where the rest of the cluster is.
    """
    known, there = _known(broker), _reachable(broker)
    return there if 2 * len(there) > len(known) else known


def is_cut_off(broker: Broker) -> bool:
    """Whether the cluster may go on elsewhere, without this broker hearing of it."""
    leader = broker.leader_of(CATALOG_GROUP).node
    is_led = leader is not None and broker.replicas.is_reachable(leader)
    return not is_led and 2 * len(_reachable(broker)) <= len(_known(broker))


def rack_of(broker: Broker, node: NodeId) -> str:
    """Return where a broker stands; empty for nowhere in particular."""
    known = broker.catalog.brokers.get(node)
    return "" if known is None else known.rack


def _known(broker: Broker) -> frozenset[NodeId]:
    return frozenset(n for n, one in broker.catalog.brokers.items() if one.host) | {broker.node}


def _reachable(broker: Broker) -> frozenset[NodeId]:
    return frozenset(filter(broker.replicas.is_reachable, _known(broker)))
