"""Reading from a replica in the consumer's own rack, after Kafka's KIP-392.

A consumer that says where it stands first asks the leader. If the leader is elsewhere and a replica
in that rack is in sync and has what is asked for, the leader names it, and the consumer goes there.
A follower serves those who stand in its own rack, up to what it knows to be committed, never more.
"""

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.presence import rack_of
from kafkaesque.types import NodeId, Offset


class Nearby:
    """What one broker can do for a consumer in a rack."""

    def __init__(self, broker: Broker, rack: str) -> None:
        self._broker = broker
        self._rack = rack
        self.is_here = rack_of(broker, broker.node) == rack
        """Whether the consumer stands where this broker does, so that any replica here will do."""

    def better(self, partition: Partition, offset: Offset) -> NodeId | None:
        """Return who else should be asked for a committed offset that this broker leads."""
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
    """Return what can be done for a consumer that says where it stands; None if it does not."""
    return Nearby(broker, rack) if rack else None
