"""How coordinators of transactions and leaders of partitions reach each other.

Two ports, one for each direction. Where both sides are on one broker they are direct calls
(`broker/transactions.py`). Across brokers `broker/transaction_carrier.py` carries the same values.
What must hold:

- A marker may be written twice, and late: its number tells a leader that it is of a transaction
  that it has seen ended (Kafka's protocol does not carry the number; then it is NO_NUMBER, and the
  coordinator's term alone fences what is old). It must not be told as written before it is
  committed in the partition.
- A check must be answered from what the coordinator has committed. The answer may be late: a leader
  that has written the producer's marker meanwhile does not trust it (`Guards`).
- Everything that is asked is answered once, with an error when nobody knows.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from kafkaesque.broker.producers import NO_NUMBER
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transaction_commands import Producer
from kafkaesque.machines.transaction_records import Place
from kafkaesque.types import NO_TERM, Term


class Marker(Struct, frozen=True, kw_only=True):
    """The end of a producer's transaction, as its partitions are told."""

    producer: Producer
    is_commit: bool
    coordinator_term: Term
    number: int = NO_NUMBER


class Check(Struct, frozen=True, kw_only=True):
    """May this producer write to a partition in its transaction?"""

    transactional_id: str
    producer: Producer
    place: Place
    adds: bool
    """Whether the partition is to belong to the transaction from now on (transactions v2)."""
    coordinator_term: Term = NO_TERM
    """Of the newest coordinator that the partition has heard of: an older one may not know that it
    was replaced, and that the transaction has ended."""


Told: TypeAlias = Callable[[Place, KafkaesqueError | None], None]
"""Told of one partition that the marker is committed there, or why not."""

Checked: TypeAlias = Callable[[int | KafkaesqueError], None]
"""Told the number of the transaction, or why the producer may not write."""


class MarkerWriter(Protocol):
    """From a coordinator to the leaders of partitions."""

    def write(self, marker: Marker, places: Sequence[Place], told: Told) -> None:
        """Have the marker written into each of these partitions."""
        ...


class TransactionDesk(Protocol):
    """From the leader of a partition to the coordinator of a transaction."""

    def check(self, check: Check, checked: Checked) -> None:
        """Ask whether a producer may write."""
        ...


class Guards:
    """The checks under way in one partition: a marker makes those of its producer worthless."""

    def __init__(self) -> None:
        self._by_producer: dict[int, set[object]] = {}

    def begin(self, producer_id: int) -> object:
        """Note that a producer is being asked about; returns what to end with."""
        guard = object()
        self._by_producer.setdefault(producer_id, set()).add(guard)
        return guard

    def end(self, producer_id: int, guard: object) -> bool:
        """Return whether no marker of the producer has come since the beginning."""
        guards = self._by_producer.get(producer_id)
        if guards is None or guard not in guards:
            return False
        guards.discard(guard)
        if not guards:
            del self._by_producer[producer_id]
        return True

    def marked(self, producer_id: int) -> None:
        """Learn that a producer's transaction has ended here."""
        self._by_producer.pop(producer_id, None)
