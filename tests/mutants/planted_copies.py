"""Planted bugs in how a broker begins again on an old copy of its folder; tests are to notice."""

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
        name="an old copy uses terms again in which it took part",
        target="kafkaesque.broker.storage.old_copy_restart:begin_again",
        old="put_aside(journal, disk, others, term, *done)",
        new="put_aside(journal, disk, others, 0, *done)",
        world=Kind.COPIES,
    ),
    Mutant(
        name="votes are exchanged with who has not said what it remembers",
        target="kafkaesque.broker.cluster.old_copies:OldCopyDetector.may_vote_with",
        old="return self._is_complete and peer in self._asked",
        new="return True",
        world=Kind.COPIES,
    ),
    Mutant(
        name="a group that came after the image begins as a new one",
        target="kafkaesque.broker.storage.old_copy_restart:settle_doubts",
        old="distrust(journal, group, term)",
        new="pass",
        world=Kind.COPIES,
    ),
    Mutant(
        name="a group that others hold by now goes on alone",
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
