"""Planted bugs in transactions; random stories on one broker should notice."""

from tests.mutants.mutation import Mutant

_PARTITION = "kafkaesque.broker.partition.partition:Partition"
_INDEX = "kafkaesque.broker.partition.partition_transactions:PartitionTransactions"
_COORDINATOR = "kafkaesque.broker.coordination.transaction_coordinator:TransactionCoordinator"
_LIFE = "kafkaesque.machines.transactions.transaction"

TRANSACTION_MUTANTS = (
    Mutant(
        name="a marker with a raised epoch counts as a duplicate",
        target=f"{_PARTITION}.end_transaction",
        old="known.transactions.first_offset(producer_id) is not None",
        new="known.is_open(producer_id, epoch)",
    ),
    Mutant(
        name="an aborted transaction is marked as committed",
        target=f"{_PARTITION}.end_transaction",
        old="ControlType.COMMIT if marker.is_commit else ControlType.ABORT",
        new="ControlType.COMMIT",
    ),
    Mutant(
        name="readers of committed records see open transactions",
        target=f"{_INDEX}.stable_offset",
        old="return min(stable, first_open, high_watermark)",
        new="return high_watermark",
    ),
    Mutant(
        name="aborted transactions are not remembered",
        target=f"{_INDEX}.ended",
        old="if not is_commit:",
        new="if False:",
    ),
    Mutant(
        name="decisions made before a crash are not completed",
        target=f"{_COORDINATOR}._pass_time",
        old="self._look_for_ends()",
        new="pass",
    ),
    Mutant(
        name="only the partition added last belongs to a transaction",
        target=f"{_LIFE}:add",
        old="before = known.places if is_begun else ()",
        new="before = ()",
    ),
    Mutant(
        name="transactions never time out",
        target="kafkaesque.machines.transactions.transactions:Transactions._left_ms",
        old="return min(max(",
        new="return 10**9 + min(max(",
    ),
    Mutant(
        name="a reinitialized producer does not raise the epoch",
        target=f"{_LIFE}:init",
        old="epoch=known.epoch + 1",
        new="epoch=known.epoch",
    ),
    Mutant(
        name="an aborted transaction is committed",
        target=f"{_COORDINATOR}._look_for_ends",
        old="is_commit=known.state is State.PREPARE_COMMIT",
        new="is_commit=True",
    ),
)
