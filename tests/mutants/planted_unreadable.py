"""Planted bugs in what happens when a log cannot be read; the scripted tests should notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_LEADERSHIP = "kafkaesque.raft.leadership:Leadership"

UNREADABLE_MUTANTS = (
    Mutant(
        name="an unreadable log is not reported when read for a follower",
        target=f"{_LEADERSHIP}._read",
        old="raft.cannot_read(error)",
        new="pass",
        world=Kind.ROT,
    ),
    Mutant(
        name="a follower does not get the entries before damage",
        target=f"{_LEADERSHIP}._read",
        old="return raft.entries(first, 1)",
        new="return ()",
        world=Kind.ROT,
    ),
    Mutant(
        name="damage that a leader meets while carrying out decisions is not noted",
        target="kafkaesque.broker.replication.replica:Replica._carry_out",
        old="if unread is not None:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a log is cut inside a batch because of a damaged header",
        target="kafkaesque.log.segment:Segment._boundary",
        old="if batch_end > offset:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a cut accepts the wrong batch boundary",
        target="kafkaesque.log.segment:Segment._boundary",
        old="if end != offset and not has_holes:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a cut removes later segments before it has found its position",
        target="kafkaesque.log.segments:Segments.truncate",
        old="segment.boundary(offset, has_holes=has_holes)",
        new="pass",
        world=Kind.ROT,
    ),
    Mutant(
        name="an unreadable log ends the whole pass of the scrub",
        target="kafkaesque.broker.replication.scrubber:Scrubber._read_log",
        old="except LogError as error:",
        new="except CorruptLog as error:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a log whose scan failed unexpectedly blocks the next log",
        target="kafkaesque.broker.replication.scrubber:Scrubber._step",
        old="self._work = None  # whatever ends the reading of one log, the next is read",
        new="self._work = work",
        world=Kind.ROT,
    ),
    Mutant(
        name="damage that prevents a snapshot stops the broker",
        target="kafkaesque.broker.machine_hosting.machine_saver:MachineSaver._unreadable",
        old="if can_be_mended(error):",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="damage in the log of a machine to host stops the broker",
        target="kafkaesque.broker.machine_hosting.machine_host:MachineHost._rebuild",
        old="if can_be_mended(error):",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="damage met by a copy of a machine stops the broker",
        target="kafkaesque.broker.machine_hosting.machine_follower:MachineFollower.catch_up",
        old="if not can_be_mended(error):",
        new="if True:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a missing state counts as damage that peers can repair",
        target="kafkaesque.broker.machine_hosting.machine_host:MachineHost._rebuild",
        old="if can_be_mended(error):",
        new="if True:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a replica never retries a snapshot after damage",
        target="kafkaesque.broker.machine_hosting.machine_saver:MachineSaver.tick",
        old="if self._is_stuck and replica.damage.found:",
        new="if self._is_stuck:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a copy of a machine does not resume after a repair",
        target="kafkaesque.broker.machine_hosting.machine_follower:MachineFollower.tick",
        old="if self._is_stuck and not self._replica.damage.found:",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a cut that fails because of damage leaves no note",
        target="kafkaesque.broker.replication.replica:Replica._log_failed",
        old="if isinstance(error, CorruptLog):",
        new="if False:",
        world=Kind.ROT,
    ),
    Mutant(
        name="entries are written after a failed cut",
        target="kafkaesque.broker.replication.replica:Replica._carry_out",
        old="if append and self.error is None:",
        new="if append:",
        world=Kind.ROT,
    ),
    Mutant(
        name="a copy that cannot be cut because of damage is left as it is",
        target="kafkaesque.broker.topic_hosting:Hosting._on_stopped",
        old="self._damaged.append(replica)",
        new="pass",
        world=Kind.ROT,
    ),
)
