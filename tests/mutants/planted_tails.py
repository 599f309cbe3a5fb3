"""Planted bugs in how a replica learns from its leader that its disk lost the end of its log."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

TAIL_MUTANTS = (
    Mutant(
        name="a follower ignores what its leader counts as acknowledged",
        target="kafkaesque.raft.follower:Following.take_heartbeat",
        old="if heartbeat.matched > raft.end:",
        new="if False:",
        world=Kind.TAILS,
    ),
    Mutant(
        name="a replica that lost its tail stays in its term",
        target="kafkaesque.raft.raft:Raft.begin_recovery",
        old="self._become_follower(self.term + 1, None)",
        new="self._become_follower(self.term, None)",
        world=Kind.TAILS,
    ),
    Mutant(
        name="a replica that lost its tail keeps its vote",
        target="kafkaesque.raft.raft:Raft.begin_recovery",
        old="self.is_recovering = self._has_lost = True",
        new="self._has_lost = True",
        world=Kind.TAILS,
    ),
    Mutant(
        name="a leader does not say what it counts as acknowledged",
        target="kafkaesque.raft.leadership:Leadership._send_heartbeat",
        old="matched=self.progress[peer].match",
        new="matched=0",
        world=Kind.TAILS,
    ),
    Mutant(
        name="a restart forgets that a replica lost its tail",
        target="kafkaesque.broker.replication.replica:Replica._carry_out",
        old="self._journal.add(RecoverySet(group=self.group, is_recovering=True))",
        new="pass",
        world=Kind.TAILS,
    ),
)
