"""Planted bugs in what happens when a log cannot be read; the scripted tests are to notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_LEADERSHIP = "kafkaesque.raft.leadership:Leadership"

UNREADABLE_MUTANTS = (
    Mutant(
        name="a log that could not be read for a follower is not reported",
        target=f"{_LEADERSHIP}._read",
        old="raft.cannot_read(error)",
        new="pass",
        world=Kind.ROT,
    ),
    Mutant(
        name="a follower gets nothing of a read that meets damage, also not what lies before it",
        target=f"{_LEADERSHIP}._read",
        old="return raft.entries(first, 1)",
        new="return ()",
        world=Kind.ROT,
    ),
    Mutant(
        name="damage that a leader meets while it carries out what was decided is not noted",
        target="kafkaesque.broker.replication.replica:Replica._carry_out",
        old="if unread is not None:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a log is cut where a damaged head says, inside of a batch",
        target="kafkaesque.log.segment:Segment._boundary",
        old="if batch_end > offset:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a cut takes the end of any batch for the place that was meant",
        target="kafkaesque.log.segment:Segment._boundary",
        old="if end != offset and not has_holes:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a cut removes later segments before it has found its place",
        target="kafkaesque.log.segments:Segments.truncate",
        old="segment.boundary(offset, has_holes=has_holes)",
        new="pass",
        world=Kind.ROT,
    ),
    Mutant(
        name="a log whose reading fails ends the whole pass of the scrub",
        target="kafkaesque.broker.replication.scrubber:Scrubber._read_log",
        old="except LogError as error:",
        new="except CorruptLog as error:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a log whose reading was ended by a bug is read again instead of the next one",
        target="kafkaesque.broker.replication.scrubber:Scrubber._step",
        old="self._work = None  # whatever ends the reading of one log, the next is read",
        new="self._work = work",
        world=Kind.ROT,
    ),
    Mutant(
        name="a broker that cannot take a snapshot for damage ends",
        target="kafkaesque.broker.machine_hosting.machine_saver:MachineSaver._unreadable",
        old="if can_be_mended(error):",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a broker that is elected to host a machine whose log is damaged ends",
        target="kafkaesque.broker.machine_hosting.machine_host:MachineHost._rebuild",
        old="if can_be_mended(error):",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a broker whose copy of a machine meets damage ends",
        target="kafkaesque.broker.machine_hosting.machine_follower:MachineFollower.catch_up",
        old="if not can_be_mended(error):",
        new="if True:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a state that is gone is taken for damage that others mend",
        target="kafkaesque.broker.machine_hosting.machine_host:MachineHost._rebuild",
        old="if can_be_mended(error):",
        new="if True:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a replica that could not take a snapshot for damage never takes one again",
        target="kafkaesque.broker.machine_hosting.machine_saver:MachineSaver.tick",
        old="if self._is_stuck and replica.damage.found:",
        new="if self._is_stuck:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a copy of a machine does not go on once its log is mended",
        target="kafkaesque.broker.machine_hosting.machine_follower:MachineFollower.tick",
        old="if self._is_stuck and not self._replica.damage.found:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a cut that fails for damage leaves no note",
        target="kafkaesque.broker.replication.replica:Replica._log_failed",
        old="if isinstance(error, CorruptLog):",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="entries are written behind a cut that has failed",
        target="kafkaesque.broker.replication.replica:Replica._carry_out",
        old="if append and self.error is None:",
        new="if append:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a copy that cannot be cut for damage is left as it is",
        target="kafkaesque.broker.topic_hosting:Hosting._on_stopped",
        old="self._damaged.append(replica)",
        new="pass",
        world=Kind.ROT,
    ),
)
