"""Planted bugs in how a broker starts on an old copy of its folder; tests should notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

COPY_MUTANTS = (
    Mutant(
        name="an old copy votes as if it had forgotten nothing",
        target="kafkaesque.broker.storage.aside:distrust",
        old="journal.add(RecoverySet(group=group, is_recovering=True))",
        new="pass",
        world=Kind.COPIES,
    ),
    Mutant(
        name="an old copy reuses terms",
        target="kafkaesque.broker.storage.old_copy_restart:begin_again",
        old="put_aside(journal, disk, others, term, *done)",
        new="put_aside(journal, disk, others, 0, *done)",
        world=Kind.COPIES,
    ),
    Mutant(
        name="votes are exchanged with peers that have not reported yet",
        target="kafkaesque.broker.cluster.old_copies:OldCopyDetector.may_vote_with",
        old="return self._is_complete and peer in self._asked",
        new="return True",
        world=Kind.COPIES,
    ),
    Mutant(
        name="a group newer than the image starts as a new one",
        target="kafkaesque.broker.storage.old_copy_restart:settle_doubts",
        old="distrust(journal, group, term)",
        new="pass",
        world=Kind.COPIES,
    ),
    Mutant(
        name="a group with other replicas by now carries on alone",
        target="kafkaesque.broker.storage.old_copy_restart:settle_doubts",
        old="put_aside(journal, disk, joined, term,",
        new="put_aside(journal, disk, {}, term,",
        world=Kind.COPIES,
    ),
    Mutant(
        name="a recovering replica lets its leader rest",
        target="kafkaesque.raft.raft:Raft.tick",
        old="self._make_itself_heard()",
        new="pass",
        world=Kind.COPIES,
    ),
)
