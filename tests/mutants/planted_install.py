"""Planted bugs in what followers are sent besides entries, and in what they may forget."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_INCOMING = "kafkaesque.log.snapshot_pieces:IncomingSnapshot"
_REPLICA = "kafkaesque.broker.replication.replica:Replica"

INSTALL_MUTANTS = (
    Mutant(
        name="a log starts over before its state is durable",
        target="kafkaesque.log.snapshot:put_in_place",
        old="disk.sync([file], [], synced)",
        new="synced(None)",
    ),
    Mutant(
        name="a log starts over before its state's file name is durable",
        target="kafkaesque.log.snapshot:put_in_place",
        old='disk.sync([], [path.rpartition("/")[0]], done)',
        new="done(None)",
    ),
    Mutant(
        name="a state is accepted without checking its checksum",
        target=f"{_INCOMING}.is_right",
        old="self.position == self._size and self._found == self._crc",
        new="self.position == self._size",
    ),
    Mutant(
        name="an install is accepted without its state",
        target=f"{_REPLICA}._lacks",
        old="request.term >= self.raft.term and self.raft.lacks(request.start)",
        new="False",
    ),
    Mutant(
        name="the high watermark never moves",
        target=f"{_REPLICA}.high_watermark",
        old="if commit != self._shown_commit:",
        new="if self._shown_commit < 0:",
    ),
    Mutant(
        name="a copy carries on as if its log had not started over",
        target="kafkaesque.broker.machine_hosting.machine_follower:MachineFollower._installed",
        old="self._load()",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a machine's log is trimmed to its newest snapshot",
        target="kafkaesque.broker.machine_hosting.machine_snapshots:MachineSnapshots.needed_from",
        old="[-KEPT]",
        new="[-1]",
    ),
    Mutant(
        name="a refilled replica knows no earlier producers",
        target="kafkaesque.broker.partition.producer_keeper:ProducerKeeper.offer",
        old="if not state:",
        new="if True:",
    ),
    Mutant(
        name="a follower deletes records that it does not know to be committed",
        target=f"{_REPLICA}._follow_low",
        old="settled = min(self.raft.commit, log.stable)",
        new="settled = log.stable",
    ),
    Mutant(
        name="a follower keeps what its leader has deleted",
        target=f"{_REPLICA}._follow_low",
        old="log.trim(low)",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a group rests before all replicas know of deleted records",
        target="kafkaesque.raft.leadership:Leadership.is_idle",
        old="and p.low >= raft.log.low",
        new="",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a resting group does not learn of deleted records",
        target=f"{_REPLICA}._on_trimmed",
        old="self.raft.wake()",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a replica that may have forgotten acknowledged entries votes",
        target="kafkaesque.broker.storage.store:_begin_run",
        old="if has_lost_power else ()",
        new="if False else ()",
    ),
    Mutant(
        name="a replica that forgot entries stays in its term",
        target="kafkaesque.broker.storage.aside:distrust",
        old="journal.add(StateSaved(group=group, term=term, vote=None))",
        new="pass",
    ),
    Mutant(
        name="a replica that forgets again before it has caught up stays in its term",
        target="kafkaesque.broker.storage.store:_begin_run",
        old="if state.may_lose and",
        new="if state.may_lose and not state.is_recovering and",
    ),
    Mutant(
        name="a start is not recorded before unsynced batches count",
        target="kafkaesque.broker.storage.store:_begin_run",
        old="        journal.write_now()\n",
        new="        pass\n",
    ),
    Mutant(
        name="unsynced batches count before the journal allows it",
        target="kafkaesque.log.partition_log:PartitionLog._begin_loss",
        old="    yield Wait.ROUND",
        new="    yield from ()",
    ),
)
