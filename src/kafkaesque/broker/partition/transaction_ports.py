"""The ports between coordinators of transactions and leaders of partitions.

Two ports, one for each direction. If both sides are on one broker they are direct calls
(`broker/coordination/transactions.py`). Across brokers `broker/coordination/transaction_carrier.py`
carries the same values. Invariants:

- A marker may be written twice, and late: its number tells a leader that its transaction has
  already ended (Kafka's protocol does not carry the number; then it is NO_NUMBER, and only the
  coordinator's term fences old markers). It must not be reported as written before it is committed
  in the partition.
- A check must be answered from what the coordinator has committed. The answer may be late: a leader
  that has written the producer's marker meanwhile discards it (`Guards`).
- Every request is answered once, with an error if the answer is unknown.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_questions import Check, Marker
from kafkaesque.machines.transactions.transaction_records import Place

Told: TypeAlias = Callable[[Place, KafkaesqueError | None], None]
"""Called for one partition once the marker is committed there, or with the error."""

Checked: TypeAlias = Callable[[int | KafkaesqueError], None]
"""Called with the number of the transaction, or with the error."""


class MarkerWriter(Protocol):
    """Carries markers from a coordinator to the leaders of partitions."""

    def write(self, marker: Marker, places: Sequence[Place], told: Told) -> None:
        """Have the marker written into each of these partitions."""
        ...


class TransactionDesk(Protocol):
    """Carries checks from a partition's leader to the coordinator of a transaction."""

    def check(self, check: Check, checked: Checked) -> None:
        """Ask whether a producer may write."""
        ...


class Guards:
    """The checks in progress in one partition: a marker invalidates those of its producer."""

    def __init__(self) -> None:
        self._by_producer: dict[int, set[object]] = {}

    def begin(self, producer_id: int) -> object:
        """Note the start of a check; returns the guard to pass to `end`."""
        guard = object()
        self._by_producer.setdefault(producer_id, set()).add(guard)
        return guard

    def end(self, producer_id: int, guard: object) -> bool:
        """Return whether the producer got no marker since `begin`."""
        guards = self._by_producer.get(producer_id)
        if guards is None or guard not in guards:
            return False
        guards.discard(guard)
        if not guards:
            del self._by_producer[producer_id]
        return True

    def marked(self, producer_id: int) -> None:
        """Note that a producer's transaction has ended here."""
        self._by_producer.pop(producer_id, None)
