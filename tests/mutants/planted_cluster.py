"""Planted bugs in what makes brokers a cluster; their seeds are of the world of brokers."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_LEADERS = "kafkaesque.broker.leaders:Leaders"
_COPY = "kafkaesque.broker.machine_follower:MachineFollower"

CLUSTER_MUTANTS = (
    Mutant(
        name="a leader of an older term is believed again",
        target=f"{_LEADERS}._take",
        old="if term < known.term:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="what was told between two words is taken for heard",
        target=f"{_LEADERS}.receive",
        old="if told.since > peer.held:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="one that restarted is still taken for the leader of what it led",
        target=f"{_LEADERS}._begin_anew",
        old="self._set(group, Leader(self._known[group].term, None))",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="one that restarted is not told anew who leads",
        target=f"{_LEADERS}.receive",
        old="peer.acknowledged = told.holds if peer.knows_us else 0",
        new="peer.acknowledged = max(peer.acknowledged, told.holds)",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a copy of the catalog shows what is not committed",
        target=f"{_COPY}.catch_up",
        old="self._replica.log, self._replica.raft.commit",
        new="self._replica.log, self._replica.log.end",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a snapshot claims more than the copy holds",
        target=f"{_COPY}.tick",
        old="self._snapshots.begin(self.applied,",
        new="self._snapshots.begin(self._replica.log.end_offset,",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a change of which nobody knows is called done",
        target="kafkaesque.broker.changes:Changes.decide",
        old="if outcome is Outcome.COMMITTED:",
        new="if True:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a partition's replicas do not know of each other",
        target="kafkaesque.broker.replica_set:ReplicaSet.open_partition",
        old="voters=tuple(sorted(topic.replicas[index]))",
        new="voters=(self._node,)",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="all brokers are given the same producer ids",
        target="kafkaesque.machines.catalog:Catalog.give_producer_ids",
        old="self.next_producer_id + count",
        new="count",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a new coordinator begins without what the log says",
        target="kafkaesque.broker.machine_host:MachineHost._rebuilt",
        old="while first < log.end:",
        new="while False:",
        world=Kind.BROKERS,
    ),
)
