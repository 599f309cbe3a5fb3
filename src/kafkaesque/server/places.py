"""Where the brokers of the cluster are, as clients are told."""

from collections.abc import Mapping
from typing import NamedTuple

from kafkaesque.broker.broker import CATALOG_GROUP, Broker
from kafkaesque.broker.presence import present
from kafkaesque.server.listening import is_local
from kafkaesque.server.session import Session
from kafkaesque.types import NodeId


class Place(NamedTuple):
    """One broker's address."""

    node: NodeId
    host: str
    port: int
    rack: str | None


def places(session: Session) -> list[Place]:
    """Return the brokers there are: this one by the client's address for it, others by theirs."""
    there = present(session.broker)
    return [one for one in all_places(session) if one.node in there]


def all_places(session: Session) -> list[Place]:
    """Return every registered broker, also those that are away, as Metadata names them.

    librdkafka drops a broker that Metadata names no more. If that was a group's coordinator, a
    producer that commits offsets in a transaction waits for it for ever instead of asking who took
    over (confluentinc/librdkafka issue 5511). A broker that is named and does not answer does no
    such harm.
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
    """Return where this broker is: a lone one is where the client found it, at `host` and `port`.

    One of several is where the others say, or librdkafka would hang up whenever it hears another
    name for the same broker. But no client of another machine is sent to its own.
    """
    mine = known.get(node, Place(node, host, port, None))
    is_elsewhere = is_local(mine.host) and not is_local(host)
    if known.keys() <= {node} or is_elsewhere:
        return mine._replace(host=host, port=port)
    return mine


def absent(broker: Broker) -> list[Place]:
    """Return the brokers of the cluster that cannot be reached from here, and where they were last.

    Unlike `present` this says so of all others, if it is this broker that is cut off.
    """
    return [
        Place(one.node, one.host, one.port, one.rack or None)
        for node, one in sorted(broker.catalog.brokers.items())
        if one.was_there and not broker.replicas.is_reachable(node)
    ]


def controller(broker: Broker) -> NodeId:
    """Return who leads the catalog, which clients know as the controller; this one if none does.

    Any broker has changes carried out, or waits until there is somebody to do so. An admin client
    of librdkafka that is told of no controller waits until it happens to hear of one: a minute.
    """
    leader = broker.leader_of(CATALOG_GROUP).node
    return broker.node if leader is None or leader not in present(broker) else leader


def nodes_of(broker: Broker) -> list[NodeId]:
    """Return the ids of all brokers."""
    there = (one.node for one in broker.catalog.brokers.values() if one.was_there)
    return sorted({broker.node, *there})
