"""Planted bugs in what brokers do for share groups: between the members and the written state."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_SHARES = "kafkaesque.broker.queues.partition_shares:PartitionShares"
_BROKER = "kafkaesque.broker.queues.broker_shares:BrokerShares"
_STATES = "kafkaesque.machines.queues.share_states:ShareStates"

SHARE_BROKER_MUTANTS = (
    Mutant(
        name="a shared partition is served before its state is adopted",
        target=f"{_SHARES}.share",
        old="self.stage is Stage.ADOPTING",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition is served before the start of the group is written",
        target=f"{_SHARES}._open",
        old="self._opening[group] =",
        new="self._groups[group] =",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition answers acknowledgements before they are written",
        target=f"{_SHARES}.settle",
        old="self._next_done.append(_Waiting(group, done, now_ms))",
        new="done(None)",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition drops a write of unknown outcome",
        target=f"{_SHARES}._written",
        old="self._ask_later(answer)",
        new="self._unwritten.clear()",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition does not fence a write that it repeats",
        target=f"{_SHARES}._written",
        old="isinstance(answer, OutcomeUnknown)",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition forgets what was settled during a write",
        target=f"{_SHARES}._confirmed",
        old="self._changed or self._next_done",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition has two writes on their way",
        target=f"{_SHARES}._write",
        old="self._is_asking or self.stage",
        new="self.stage",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition writes on after another leader has come",
        target=f"{_SHARES}._written",
        old="isinstance(answer, FencedTerm)",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition starts over though it is led no more",
        target=f"{_SHARES}._adopt",
        old="not self.is_current",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition keeps the locks that ran out",
        target=f"{_SHARES}.tick",
        old="share.due_ms <= now_ms",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition goes on with the state of an earlier term",
        target=f"{_BROKER}.of",
        old="before.is_current",
        new="True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a shared partition does not release what lost members held",
        target=f"{_BROKER}._release",
        old="session.held",
        new="()",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the state of a shared partition is written by old leaders",
        target=f"{_STATES}.write",
        old="asked != (adopted.term, adopted.serial)",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the state of a shared partition is written by writes that were given up",
        target=f"{_STATES}.write",
        old="asked != (adopted.term, adopted.serial)",
        new="command.term != adopted.term",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the state of a shared partition is adopted by old leaders",
        target=f"{_STATES}.adopt",
        old="asked < (adopted.term, adopted.serial)",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the state of a shared partition is kept for offsets that are used again",
        target=f"{_STATES}.adopt",
        old="without_offsets_from(command.first, state.records())",
        new="()",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the state of a shared partition is void only from the newest term on",
        target=f"{_STATES}.adopt",
        old="adopted.term < command.since",
        new="False",
        world=Kind.BROKERS,
    ),
)
