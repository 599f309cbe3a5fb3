"""One partition of `__consumer_offsets` and the consumer groups on it."""

from collections.abc import Callable

from kafkaesque.broker.machine_hosting.coordinator import Coordinator, lost
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.partition.producers import NO_NUMBER
from kafkaesque.broker.partition.transaction_ports import Guards
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.groups.group_commands import TransactionEnd, TransactionEnded
from kafkaesque.machines.groups.groups import Groups
from kafkaesque.machines.transactions.transaction_questions import Marker

ENDED_MAX = 10_000
"""Limit of producers whose last ended transaction is remembered."""


class GroupCoordinator(Coordinator[Groups]):
    """The groups on one replica, and the ends of transactions that commit their offsets."""

    def __init__(
        self,
        site: MachineSite,
        config: GroupConfig,
    ) -> None:
        self.guards = Guards()
        """The checks of transactional commits in progress."""
        self._config = config
        self._ended: dict[int, int] = {}
        """For each producer, the number of its last transaction that ended here in this term."""
        super().__init__(
            site,
            lambda: Groups(self._config),
            expires_every_ms=config.offsets_check_ms,
        )

    def configure(self, config: GroupConfig) -> None:
        """Apply new settings to future decisions."""
        self._config = config
        if self.machine is not None:
            self.machine.configure(config)

    @property
    def members_bytes(self) -> int:
        """The approximate size of its groups' members."""
        return 0 if self.machine is None else self.machine.members_bytes

    @property
    def offsets_bytes(self) -> int:
        """The approximate size of its groups' offsets."""
        return 0 if self.machine is None else self.machine.offsets_bytes

    def end_transaction(
        self, marker: Marker, told: Callable[[KafkaesqueError | None], None]
    ) -> None:
        """Apply or drop a transaction's offsets; calls `told` when that is committed.

        A late duplicate of a marker must not end the next transaction: it changes nothing.
        """
        producer_id = marker.producer_id
        is_known = marker.number != NO_NUMBER
        if self.is_hosted and is_known and self.has_ended(producer_id, marker.number):
            self._host.when_committed(
                lambda outcome: told(None if outcome is Outcome.COMMITTED else lost())
            )
            return
        self.guards.marked(producer_id)
        if self._host.may_decide and is_known:
            self._note_end(producer_id, marker.number)

        def reply(answer: TransactionEnded | KafkaesqueError) -> None:
            told(answer if isinstance(answer, KafkaesqueError) else None)

        self.ask(TransactionEnd(producer_id=producer_id, is_commit=marker.is_commit), reply)

    def _note_end(self, producer_id: int, number: int) -> None:
        self._ended[producer_id] = number
        if len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]

    def has_ended(self, producer_id: int, number: int) -> bool:
        """Return whether a producer's transaction of this number is known to have ended here."""
        return number <= self._ended.get(producer_id, NO_NUMBER)

    def _on_lost(self, machine: Groups) -> None:
        self._ended.clear()
        super()._on_lost(machine)
