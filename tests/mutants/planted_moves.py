"""Planted bugs in how partitions are moved; their seeds are of the world of brokers."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_MOVER = "kafkaesque.broker.cluster.mover:Mover"
_MOVES = "kafkaesque.machines.catalog.catalog_moves"
_FOLDERS = "kafkaesque.broker.storage.topic_folders:TopicFolders"
_STORE = "kafkaesque.broker.storage.store:Store"
_COORDINATORS = "kafkaesque.broker.coordination.coordinators:Coordinators"

MOVE_MUTANTS = (
    Mutant(
        name="the targets of a cancelled move drop replicas that still vote",
        target=f"{_MOVES}:_begun",
        old="leaving=leaving",
        new="leaving=()",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a late report ends a later move",
        target=f"{_MOVES}:_is_meant",
        old="move.number == number and ",
        new="",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a leader that only knows an earlier move changes the voters",
        target="kafkaesque.raft.leadership:Leadership.change_voters",
        old="if voters.move < raft.voters.move:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the voters do not carry the number of their move",
        target=f"{_MOVER}._step",
        old="voters.move < move.number or ",
        new="",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a replica added later believes that it knows the voters",
        target="kafkaesque.broker.cluster.replica_set:first_voters",
        old="if not topic.is_birthplace(index, node):",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a move is done before the old replicas have left",
        target=f"{_MOVER}._reduce",
        old="if not surplus:",
        new="if True:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a move is done before its last change is committed",
        target=f"{_MOVER}._step",
        old=" or raft.is_changing",
        new="",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a replica that has not caught up gets a vote",
        target=f"{_MOVER}._is_in_step",
        old="return held >= needed",
        new="return True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a voter is removed while the remaining ones are down",
        target=f"{_MOVER}._reduce",
        old="if not all(self._is_in_step(one, node, noted.commit) for node in others):",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a leader about to be removed keeps leading",
        target=f"{_MOVER}._reduce",
        old="one.replica.transfer(others[0])",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a finished move is reported only once",
        target=f"{_MOVER}._report",
        old="self._ticks - noted.asked_at < ASK_TICKS",
        new="True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="new replicas are filled without a rate limit",
        target=f"{_MOVER}._refill",
        old="progress.allowance = min(progress.allowance or 0, 0) + share",
        new="progress.allowance = None",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="all partitions are moved at once",
        target=f"{_MOVER}.tick",
        old="was_catching_up or room > 0",
        new="True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a broker that rejoins a group votes before it has caught up",
        target=f"{_STORE}.leave",
        old="distrust(self.journal, group)",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a broker that leaves a group forgets its term",
        target=f"{_FOLDERS}.leave",
        old="self._store.leave(group)",
        new="self._store.forget(group)",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the files of a removed partition stay",
        target=f"{_FOLDERS}._set_aside",
        old="if partition not in names:",
        new="if True:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="groups are coordinated on a removed partition",
        target=f"{_COORDINATORS}.follow",
        old="if before is not None and before.replica is not replica:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="an added partition gets no coordinator",
        target=f"{_COORDINATORS}.follow",
        old="if isinstance(slot, Partition) and self._by_partition[index] is None:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a drained broker gets new partitions",
        target="kafkaesque.machines.catalog.catalog_decider:CatalogDecider._racks",
        old=" and not b.is_draining",
        new="",
        world=Kind.BROKERS,
    ),
)
