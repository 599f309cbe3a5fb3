"""Planted bugs in prepared transactions and the decisions of batches."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_SINKS = "kafkaesque.machines.transactions.sinks:Sinks"
_TRANSACTIONS = "kafkaesque.machines.transactions.transactions:Transactions"
_LIFE = "kafkaesque.machines.transactions.transaction"

BATCH_MUTANTS = (
    Mutant(
        name="an atomic decision is written in parts",
        target="kafkaesque.broker.machine_hosting.coordinator:Coordinator._carry_out",
        old="[records] if decision.is_one_batch else batches(records)",
        new="batches(records)",
    ),
    Mutant(
        name="a replaced driver decides",
        target=f"{_SINKS}.of_driver",
        old="if driver_epoch < known.driver_epoch:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="tasks of a replaced driver begin",
        target=f"{_SINKS}.check_came",
        old="if one.driver_epoch < sink.driver_epoch:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the last decision wins",
        target=f"{_TRANSACTIONS}.decide_batch",
        old="if sink.batch == command.batch:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a new driver forgets the previous driver's decision",
        target=f"{_SINKS}.registered",
        old="replace(known, driver_epoch",
        new="Sink(driver_epoch",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="only the first transaction of a batch is committed",
        target=f"{_TRANSACTIONS}.decide_batch",
        old="if name in command.producers:",
        new="if name == next(iter(command.producers), None):",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a repeated decision answers the request instead of the earlier decision",
        target=f"{_TRANSACTIONS}._decided_before",
        old="names = names_of(key, sink)",
        new="names = tuple(command.producers)",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a decision does not survive a snapshot",
        target=f"{_TRANSACTIONS}.records",
        old="yield sink_to_record(key, sink)",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a prepared transaction times out with its producer",
        target=f"{_TRANSACTIONS}._left_ms",
        old="if known.state is State.PREPARED:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a prepared transaction never expires",
        target=f"{_TRANSACTIONS}._left_ms",
        old="self._config.prepared_ms_max, known",
        new="10**12, known",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="transactions outside the decision are left open",
        target=f"{_TRANSACTIONS}.decide_batch",
        old="self._take_back(name, now, out)",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="the previous driver's transactions are left open",
        target=f"{_TRANSACTIONS}.register",
        old="self._take_back(name, now, out)",
        new="pass",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a decision is answered before partitions have the markers",
        target=f"{_TRANSACTIONS}.decide_batch",
        old="if not any(name in self._unfinished for name in names):",
        new="if True:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="ids of batches are kept when they are complete",
        target=f"{_TRANSACTIONS}.completed",
        old="if parse(name) is not None:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a task begins when its batch is decided",
        target=f"{_SINKS}.check_came",
        old="if one.batch <= sink.batch:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="a part of a batch is committed by itself",
        target=f"{_TRANSACTIONS}.end",
        old="if command.is_commit and parse(name) is not None:",
        new="if False:",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="preparing a transaction does not fence its producer",
        target=f"{_LIFE}:_kept",
        old="epoch=known.epoch + 1",
        new="epoch=known.epoch",
        world=Kind.BROKERS,
    ),
    Mutant(
        name="an older checkpoint is not noticed",
        target=f"{_TRANSACTIONS}.decide_batch",
        old="check_not_older(sink, command.batch)",
        new="pass",
        world=Kind.BROKERS,
    ),
)
