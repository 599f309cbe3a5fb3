"""Planted bugs in what makes brokers a cluster; their seeds are of the world of brokers."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_LEADERS = "kafkaesque.broker.leaders:Leaders"
_COPY = "kafkaesque.broker.machine_follower:MachineFollower"
_REFUSALS = "kafkaesque.broker.refusals:Refusals"
_PARTITION = "kafkaesque.broker.partition:Partition"
_IN_SYNC = "kafkaesque.broker.in_sync:InSync"

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
        name="a saved copy begins behind marks that are not committed",
        target=f"{_COPY}._load",
        old="log.index_at(offset - 1) + 1",
        new="log.index_at(offset)",
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
    # ── acknowledgement, in-sync sets, reads from followers ──────────────────────────────────
    Mutant(
        name="a majority is enough although the topic wants more copies",
        target="kafkaesque.broker.watermark:Copies.reached",
        old="min(commit, held_by(count)) < end",
        new="commit < end",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="copies count before they are committed",
        target="kafkaesque.broker.watermark:Copies.reached",
        old="min(commit, held_by(count)) < end",
        new="held_by(count - 1) < end",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="acks=all is taken although too few replicas are in sync",
        target=f"{_PARTITION}._check_replicas",
        old="if found < wanted:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a leader that is cut off takes what it cannot commit",
        target=f"{_PARTITION}._check_replicas",
        old="if in_sync.is_cut_off:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="whoever waits is not told that too few are left in sync",
        target="kafkaesque.broker.replica:Replica.look_in_sync",
        old="self._copies.too_few(len(self.in_sync.nodes))",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the dead stay in sync",
        target=f"{_IN_SYNC}._is_there",
        old="silence <= self._config.election_ticks and self._is_reachable(node)",
        new="True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="whoever lags stays in sync",
        target=f"{_IN_SYNC}._keeps_up",
        old="now - level.level_tick <= self._config.lag_ticks_max",
        new="True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a group goes to rest before anybody has looked who is in sync",
        target="kafkaesque.broker.replica_set:ReplicaSet.tick",
        old="self._look_in_sync()  #",
        new="pass  #",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="one that has not answered since the last rest is vouched for",
        target="kafkaesque.raft.leadership:Leadership.is_idle",
        old=" and p.answered_at > since",
        new="",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="an older word of a leader is believed after a newer one",
        target=f"{_LEADERS}.receive",
        old="if told.version <= peer.held:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a follower serves what it does not know to be committed",
        target=f"{_PARTITION}._readable_end",
        old="log, end = self.replica.log, self.high_watermark",
        new="log, end = self.replica.log, self.replica.log.end_offset",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="what is yet to be cut from the segments is shown",
        target=f"{_PARTITION}._readable_end",
        old="if log.is_settled:",
        new="if True:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a follower that follows nobody serves on",
        target=f"{_PARTITION}._check_following",
        old="if replica.raft.leader is None:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="consumers are sent to replicas that are not in sync",
        target="kafkaesque.broker.nearby:Nearby.better",
        old="for node in in_sync.nodes",
        new="for node in replica.raft.voters.voters",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a leader that is gone keeps others from being elected",
        target="kafkaesque.raft.raft:Raft.leader_gone",
        old="if self.role is Role.FOLLOWER and self.leader is not None:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a gap behind a refused batch is called one",
        target=f"{_REFUSALS}.check",
        old="if self._is_behind(view, gap.expected):",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a new producer's second batch is taken before its first",
        target=f"{_REFUSALS}.check",
        old="if producers.epoch_of(view.producer_id) < 0",
        new="if False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a batch that was given up is waited for without end",
        target=f"{_REFUSALS}._is_behind",
        old="if self._clock.monotonic_ms() - known.at_ms >= REFUSED_MS_MAX:",
        new="if False:",
        world=Kind.BROKERS,
    ),
)
