"""Hosts the catalog on the broker that leads it.

Unlike the groups and transactions of `broker/coordination`, its callers must know whether a command
that failed may have been carried out: only then do they get OutcomeUnknown.
"""

import random
from collections.abc import Callable, Mapping

from kafkaesque.broker.machine_hosting.coordinator import Coordinator
from kafkaesque.broker.machine_hosting.machine_saver import Live
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.errors import DiskFull, KafkaesqueError, NotLeader, OutcomeUnknown, RaftError
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_commands import outcome_unknown
from kafkaesque.machines.catalog.catalog_decider import CatalogDecider, Surroundings
from kafkaesque.machines.catalog.features import Range
from kafkaesque.types import NodeId


class CatalogCoordinator(Coordinator[CatalogDecider]):
    """The catalog on one replica; `on_led` is called when it starts to decide here."""

    def __init__(
        self,
        site: MachineSite,
        supports: Mapping[str, Range],
        live: Callable[[], Live | None],
        is_reachable: Callable[[NodeId], bool],
        chance: random.Random,
        on_led: Callable[[Catalog], None],
    ) -> None:
        self._on_led = on_led
        raft, log = site.replica.raft, site.replica.log
        around = Surroundings(
            node=raft.node,
            is_reachable=is_reachable,
            voters=lambda: raft.voters.voters,
            end=lambda: log.end_offset,
            chance=chance,
        )
        super().__init__(site, lambda: CatalogDecider(Catalog(supports), around), live=live)

    @property
    def catalog(self) -> Catalog | None:
        """The catalog as decided, while it is led here; else None."""
        machine = self.machine
        return None if machine is None else machine.catalog

    def _on_ready(self, machine: CatalogDecider) -> None:
        self._on_led(machine.catalog)

    def _not_now(self) -> NotLeader:
        return NotLeader(None)

    def _lost(self) -> OutcomeUnknown:
        return outcome_unknown()

    def _not_written(self, error: RaftError | DiskFull) -> KafkaesqueError:
        # Every decision is one batch, so nothing is written; the machine changes only by what is.
        return error.with_traceback(None)
