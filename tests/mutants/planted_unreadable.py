"""Planted bugs in what happens when a log cannot be read; the scripted tests are to notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_LEADERSHIP = "kafkaesque.raft.leadership:Leadership"

UNREADABLE_MUTANTS = (
    Mutant(
        name="nobody is told that the log could not be read for a follower",
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
        target="kafkaesque.broker.replica:Replica._carry_out",
        old="if unread is not None:",
        new="if False:",
        world=Kind.ROT,
    ),
)
