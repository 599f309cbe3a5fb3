"""Planted bugs in what followers are sent besides entries, and in what they may forget."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_INCOMING = "kafkaesque.log.snapshot_pieces:IncomingSnapshot"
_REPLICA = "kafkaesque.broker.replication.replica:Replica"

INSTALL_MUTANTS = (
    Mutant(
        name="a log begins anew before its state is durable",
        target="kafkaesque.log.snapshot:put_in_place",
        old="disk.sync([file], [], synced)",
        new="synced(None)",
    ),
    Mutant(
        name="a log begins anew before its state is sure to have its name",
        target="kafkaesque.log.snapshot:put_in_place",
        old='disk.sync([], [path.rpartition("/")[0]], done)',
        new="done(None)",
    ),
    Mutant(
        name="a state is taken whatever its checksum",
        target=f"{_INCOMING}.is_right",
        old="self.position == self._size and self._found == self._crc",
        new="self.position == self._size",
    ),
    Mutant(
        name="an install is taken without its state",
        target=f"{_REPLICA}._lacks",
        old="request.term >= self.raft.term and self.raft.lacks(request.start)",
        new="False",
    ),
    Mutant(
        name="the high watermark stays where it was first shown",
        target=f"{_REPLICA}.high_watermark",
        old="if commit != self._shown_commit:",
        new="if self._shown_commit < 0:",
    ),
    Mutant(
        name="a copy goes on as if its log had not begun anew",
        target="kafkaesque.broker.machine_hosting.machine_follower:MachineFollower._installed",
        old="self._load()",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a machine's log is dropped behind its newest snapshot alone",
        target="kafkaesque.broker.machine_hosting.machine_snapshots:MachineSnapshots.needed_from",
        old="[-KEPT]",
        new="[-1]",
    ),
    Mutant(
        name="who begins anew knows nothing of producers before",
        target="kafkaesque.broker.partition.producer_keeper:ProducerKeeper.offer",
        old="if not state:",
        new="if True:",
    ),
    Mutant(
        name="a follower forgets records that are not committed there",
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
        name="a group rests before all have heard what was deleted",
        target="kafkaesque.raft.leadership:Leadership.is_idle",
        old="and p.low >= raft.log.low",
        new="",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a group at rest does not hear what was deleted",
        target=f"{_REPLICA}._on_trimmed",
        old="self.raft.wake()",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a replica votes that may have forgotten what it acknowledged",
        target="kafkaesque.broker.storage.store:_begin_run",
        old="if has_lost_power else ()",
        new="if False else ()",
    ),
    Mutant(
        name="one that forgot stays in its term",
        target="kafkaesque.broker.storage.aside:distrust",
        old="journal.add(StateSaved(group=group, term=term, vote=None))",
        new="pass",
    ),
    Mutant(
        name="one that forgets again before it has caught up stays in its term",
        target="kafkaesque.broker.storage.store:_begin_run",
        old="if state.may_lose and",
        new="if state.may_lose and not state.is_recovering and",
    ),
    Mutant(
        name="a start is not noted before batches count unsynced",
        target="kafkaesque.broker.storage.store:_begin_run",
        old="        journal.write_now()\n",
        new="        pass\n",
    ),
    Mutant(
        name="batches count unsynced before the journal says that they may",
        target="kafkaesque.log.partition_log:PartitionLog._begin_loss",
        old="    yield Wait.ROUND",
        new="    yield from ()",
    ),
)
