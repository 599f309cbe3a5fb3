"""Planted bugs in transactions over several brokers; seeds of whole clusters should notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_CARRIER = "kafkaesque.broker.coordination.transaction_carrier:TransactionCarrier"
_COORDINATOR = "kafkaesque.broker.coordination.transaction_coordinator:TransactionCoordinator"
_BROKER = "kafkaesque.broker.coordination.transactions:BrokerTransactions"

CLUSTER_TRANSACTION_MUTANTS = (
    Mutant(
        name="only the first partition of a transaction gets a marker",
        target="kafkaesque.broker.coordination.transaction_coordinator:_Ending.__init__",
        old="set(places)",
        new="set(places[:1])",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a leader that did not answer counts as having written the marker",
        target=f"{_CARRIER}._send",
        old="is_settled = place in settled",
        new="is_settled = True",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a topic missing from a lagging catalog copy counts as deleted",
        target=f"{_CARRIER}.write",
        old="self._look_for(place, told)",
        new='told(place, UnknownTopic("the topic was deleted"))',
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a coordinator answers before the commit",
        target="kafkaesque.broker.machine_hosting.coordinator:Coordinator._carry_out",
        old="self._host.write(last, done)",
        new="self._host.write(last, _ignore), done(Outcome.COMMITTED)",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the next coordinator does not finish decided transactions",
        target=f"{_COORDINATOR}._pass_time",
        old="self._look_for_ends()",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a leader writes a marker meant for an earlier term",
        target=f"{_BROKER}._write",
        old="if term not in (None, partition.term):",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a leader that does not know a topic says that it needs no marker",
        target=f"{_BROKER}._end_for",
        old="and not is_gone",
        new="",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a replaced coordinator lets producers write",
        target=f"{_BROKER}.check",
        old="coordinator.replica.raft.term < check.coordinator_term",
        new="False",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="B26: a late end of one transaction ends the next",
        target="kafkaesque.machines.transactions.transaction:end",
        old="return _raised(decided, command.fresh_id) if command.bumps_epoch else decided",
        new="return decided",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="B29: ending a transaction twice is refused",
        target="kafkaesque.machines.transactions.transaction:end",
        old="if command.bumps_epoch and known is not None and _is_last(known, command.producer):",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="B30: a send that may still be committed is reported as not written",
        target="kafkaesque.server.handlers.produce:_answer",
        old='message = "leadership was lost meanwhile; it may yet be committed"',
        new='code, message = ErrorCode.NOT_LEADER_OR_FOLLOWER, ""',
        world=Kind.BROKERS,
    ),
    Mutant(
        name="an init binds its producer to the connection over which it came",
        target=f"{_COORDINATOR}._check_connection",
        old="self._connections.pop(name, None)",
        new="self._connections[name] = connection",
        world=Kind.BROKERS,
    ),
)
