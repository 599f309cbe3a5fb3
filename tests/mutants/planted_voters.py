"""Planted bugs in who votes on the catalog, and in where replicas are moved."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_CHOICE = "kafkaesque.machines.catalog.voter_choice:_Choice"
_VOTERS = "kafkaesque.broker.cluster.catalog_voters:CatalogVoters"
_PLANNER = "kafkaesque.machines.catalog.move_planning:_Planner"

VOTER_MUTANTS = (
    Mutant(
        name="the catalog stays at two voters",
        target=f"{_CHOICE}._wanted",
        old="len(self._free) >= _STEP",
        new="len(self._free) >= 1",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a blocked step is not undone",
        target=f"{_CHOICE}._made_odd",
        old="return self._voters - {self._worst()}",
        new="return self._voters",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a broker may vote before it has caught up",
        target="kafkaesque.broker.cluster.catalog_voters:_has",
        old="return progress.match >= commit and progress.commit >= commit",
        new="return True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a voter is replaced before its time",
        target=f"{_VOTERS}._seen",
        old="is_lost=self._absences.absent_ms(node) >= self._replace_ms",
        new="is_lost=not self._absences.is_live(node)",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a permanently lost voter keeps its vote",
        target=f"{_VOTERS}._seen",
        old="is_lost=self._absences.absent_ms(node) >= self._replace_ms",
        new="is_lost=False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a lost voter is removed before its successor is added",
        target=f"{_CHOICE}._replacing",
        old="if self._free:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the voters change in a way that no majority can commit",
        target=f"{_CHOICE}.next",
        old="return wanted if live > len(wanted) // 2 else self._voters",
        new="return wanted",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a removed broker stays in the group",
        target=f"{_VOTERS}.members",
        old="return self._unheard | catalog.brokers.keys()",
        new="return {*self._replica.raft.voters.members, *catalog.brokers}",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a new broker does not join the group",
        target=f"{_VOTERS}.members",
        old="return self._unheard | catalog.brokers.keys()",
        new="return self._unheard | {n for n, b in catalog.brokers.items() if b.was_there}",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the replicas of an absent broker are replaced at once",
        target="kafkaesque.broker.cluster.caretaker:Caretaker._hosts",
        old="is_lost=self.absences.absent_ms(broker.node) >= lost_ms",
        new="is_lost=not self.absences.is_live(broker.node)",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="too many partitions are moved at a time",
        target=f"{_PLANNER}._is_spent",
        old="return len(self.moves) >= self._budget",
        new="return False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a partition without a majority is moved",
        target=f"{_PLANNER}._is_movable",
        old="return live_count(nodes, self._hosts) > len(nodes) // 2",
        new="return True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="two replicas of a partition are placed in the same rack",
        target=f"{_PLANNER}._best",
        old="self._hosts[node].rack in reached,",
        new="",
        world=Kind.BROKERS,
    ),
)
