"""Looks after the cluster while this broker leads the catalog, and does nothing while it does not.

Every second it looks who is there, and who is to vote on the catalog (`broker/catalog_voters.py`).
All that it knows it knows from looking: a leader that is just elected begins anew.
"""

from collections.abc import Iterable
from typing import Protocol

from kafkaesque.broker.absences import Absences
from kafkaesque.broker.catalog_voters import CatalogVoters
from kafkaesque.broker.machine_host import MachineHost
from kafkaesque.broker.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.config import ClusterConfig
from kafkaesque.machines.catalog import Catalog
from kafkaesque.types import NodeId


class Reach(Protocol):
    """Who can be reached from here."""

    @property
    def reachable(self) -> frozenset[NodeId]:
        """The other brokers that could be reached of late, of those that we know of."""
        ...

    def meet(self, nodes: Iterable[NodeId]) -> None:
        """Exchange beats with these brokers from now on, to know whether they are there."""
        ...


class Caretaker:
    """The part of a broker that matters only on the leader of the catalog."""

    def __init__(
        self,
        replica: Replica,
        host: MachineHost[Catalog],
        reach: Reach,
        clock: Clock,
        config: ClusterConfig,
        first: Iterable[NodeId],
    ) -> None:
        self._node = replica.raft.node
        self._host = host
        self._reach = reach
        self._clock = clock
        self._config = config
        self.absences = Absences(self._node, clock)
        self._voters = CatalogVoters(replica, self.absences, first, config.voter_replace_ms)
        self._look_at_ms = 0
        self._brokers = 0
        """How many there were at the last look: one that has joined waits to be let in."""

    def tick(self) -> None:
        """Let time pass; look, if it is time to and we lead."""
        if not self._host.is_hosted:
            self.absences.forget()
            return
        now_ms = self._clock.monotonic_ms()
        is_new = len(self._host.machine.brokers) != self._brokers
        self._brokers = len(self._host.machine.brokers)
        if now_ms < self._look_at_ms and not is_new:
            if self._voters.is_between:
                self._voters.look(self._host.machine)
            return
        self._look_at_ms = now_ms + self._config.look_ms
        catalog = self._host.machine
        members = self._voters.members(catalog)
        self._reach.meet(members - {self._node})
        self.absences.look(members, self._reach.reachable)
        self._voters.note_commit()
        self._voters.look(catalog)
