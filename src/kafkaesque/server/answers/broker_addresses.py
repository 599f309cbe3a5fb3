"""The brokers' addresses, as reported to clients."""

from collections.abc import Mapping
from typing import NamedTuple

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.presence import present
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.server.requests.addresses import is_local
from kafkaesque.server.requests.session import Session
from kafkaesque.types import NodeId


class Place(NamedTuple):
    """One broker's address."""

    node: NodeId
    host: str
    port: int
    rack: str | None


def places(session: Session) -> list[Place]:
    """Return the present brokers: this one by the client's address for it, others by their own."""
    there = present(session.broker)
    return [one for one in all_places(session) if one.node in there]


def all_places(session: Session) -> list[Place]:
    """Return every registered broker, including absent ones, as Metadata lists them.

    librdkafka drops a broker that Metadata no longer lists. If that was a group's coordinator, a
    producer that commits offsets in a transaction waits for it forever instead of asking who took
    over (confluentinc/librdkafka issue 5511). Listing a broker that does not answer does no such
    harm.
    """
    broker = session.broker
    found = {
        one.node: Place(one.node, one.host, one.port, one.rack or None)
        for one in broker.catalog.brokers.values()
        if one.host
    }
    found[broker.node] = own_place(broker.node, session.host, session.port, found)
    return [found[node] for node in sorted(found)]


def own_place(node: NodeId, host: str, port: int, known: Mapping[NodeId, Place]) -> Place:
    """Return this broker's address: if alone, where the client found it, at `host` and `port`.

    In a cluster it is the address that the others report, or librdkafka would disconnect whenever
    it sees another name for the same broker. But no client on another machine is sent to its own.
    """
    mine = known.get(node, Place(node, host, port, None))
    is_elsewhere = is_local(mine.host) and not is_local(host)
    if known.keys() <= {node} or is_elsewhere:
        return mine._replace(host=host, port=port)
    return mine


def absent(broker: Broker) -> list[Place]:
    """Return brokers that cannot be reached from here, with their last addresses.

    Unlike `present` this lists all others if this broker is the one cut off.
    """
    return [
        Place(one.node, one.host, one.port, one.rack or None)
        for node, one in sorted(broker.catalog.brokers.items())
        if one.was_there and not broker.replicas.is_reachable(node)
    ]


def controller(broker: Broker) -> NodeId:
    """Return the catalog leader, the controller for clients; this broker if there is none.

    Any broker gets changes carried out, or waits until there is a leader. An admin client of
    librdkafka that learns of no controller waits until it happens to hear of one: a minute.
    """
    leader = broker.leader_of(CATALOG_GROUP).node
    return broker.node if leader is None or leader not in present(broker) else leader


def nodes_of(broker: Broker) -> list[NodeId]:
    """Return the ids of all brokers."""
    there = (one.node for one in broker.catalog.brokers.values() if one.was_there)
    return sorted({broker.node, *there})
