"""Which brokers of the cluster are reachable, as seen from one of them."""

from kafkaesque.broker.broker import Broker
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.types import NodeId


def present(broker: Broker) -> frozenset[NodeId]:
    """Return the registered brokers that this one can reach, itself included.

    A broker that reaches no majority is cut off itself and cannot judge the others. It then returns
    all brokers, so that clients do not forget the rest of the cluster.
    """
    known, there = _known(broker), _reachable(broker)
    return there if 2 * len(there) > len(known) else known


def is_cut_off(broker: Broker) -> bool:
    """Whether the cluster may continue elsewhere without this broker knowing."""
    leader = broker.leader_of(CATALOG_GROUP).node
    is_led = leader is not None and broker.replicas.is_reachable(leader)
    return not is_led and 2 * len(_reachable(broker)) <= len(_known(broker))


def rack_of(broker: Broker, node: NodeId) -> str:
    """Return a broker's rack; empty for none."""
    known = broker.catalog.brokers.get(node)
    return "" if known is None else known.rack


def _known(broker: Broker) -> frozenset[NodeId]:
    return frozenset(n for n, one in broker.catalog.brokers.items() if one.host) | {broker.node}


def _reachable(broker: Broker) -> frozenset[NodeId]:
    return frozenset(filter(broker.replicas.is_reachable, _known(broker)))
