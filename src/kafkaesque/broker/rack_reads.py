"""Reads from a replica in the consumer's own rack, after Kafka's KIP-392.

A consumer that states its rack first asks the leader. If the leader is elsewhere and a replica in
that rack is in sync and has the requested offset, the leader names it, and the consumer goes there.
A follower serves only consumers in its own rack, and only what it knows to be committed.
"""

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.presence import rack_of
from kafkaesque.types import NodeId, Offset


class Nearby:
    """How one broker serves a consumer in a rack."""

    def __init__(self, broker: Broker, rack: str) -> None:
        self._broker = broker
        self._rack = rack
        self.is_here = rack_of(broker, broker.node) == rack
        """Whether the consumer is in this broker's rack, so that any replica here will do."""

    def better(self, partition: Partition, offset: Offset) -> NodeId | None:
        """Return a better broker to ask for a committed offset that this broker leads, if any."""
        replica = partition.replica
        leadership, in_sync = replica.raft.leadership, replica.in_sync
        if self.is_here or leadership is None or in_sync is None:
            return None
        if not partition.first_offset <= offset <= partition.high_watermark:
            return None
        needed = replica.log.index_at(offset)
        found = [
            (-leadership.progress[node].commit, node)
            for node in in_sync.nodes
            if node != self._broker.node
            and rack_of(self._broker, node) == self._rack
            and leadership.progress[node].commit >= needed
        ]
        return min(found)[1] if found else None


def nearby(broker: Broker, rack: str) -> Nearby | None:
    """Return how to serve a consumer that states its rack; None if it does not."""
    return Nearby(broker, rack) if rack else None
