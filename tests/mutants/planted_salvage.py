"""Planted bugs in how a broker starts that has lost its journal; tests should notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

SALVAGE_MUTANTS = (
    Mutant(
        name="a broker that lost its journal reuses terms",
        target="kafkaesque.broker.storage.salvage:rejoin",
        old="distrust(journal, CATALOG_GROUP, term)",
        new="distrust(journal, CATALOG_GROUP)",
        world=Kind.TAILS,
    ),
    Mutant(
        name="a broker that lost its journal treats its groups as new",
        target="kafkaesque.broker.storage.salvage:rejoin",
        old='journal.add(MemoryDoubted(group="", term=term))',
        new="pass",
        world=Kind.TAILS,
    ),
    Mutant(
        name="a broker that lost its journal votes on the catalog",
        target="kafkaesque.broker.storage.salvage:rejoin",
        old="distrust(journal, CATALOG_GROUP, term)",
        new="pass",
        world=Kind.TAILS,
    ),
    Mutant(
        name="a broker that lost its journal restarts its run numbers",
        target="kafkaesque.broker.storage.salvage:rejoin",
        old="journal.leap(max(one.run for one in told), max(one.round for one in told))",
        new="pass",
        world=Kind.TAILS,
    ),
    Mutant(
        name="a log rebuilt from its segments continues in their last term",
        target="kafkaesque.broker.storage.salvage:survey",
        old="term = unused_term(one.last_term for one in logs)",
        new="term = max(one.last_term for one in logs) + 1",
        world=Kind.TAILS,
    ),
    Mutant(
        name="offsets of misplaced batches are assigned again",
        target="kafkaesque.log.journal_rebuild:_Walk.read",
        old="self.expected += misfits",
        new="pass",
        world=Kind.TAILS,
    ),
)
