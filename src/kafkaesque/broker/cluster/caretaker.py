"""Takes care of the cluster while this broker leads the catalog; idle otherwise.

Every second it checks which brokers are reachable, and which should vote on the catalog
(`broker/cluster/catalog_voters.py`). Every few seconds it checks which partitions should move
(`machines/catalog/move_planning.py`) and has the catalog start these moves, a few at a time; the
partitions' leaders carry them out. It knows only what it observes: a newly elected leader starts
from scratch.
"""

import random
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Protocol

from kafkaesque.broker.cluster.absences import Absences
from kafkaesque.broker.cluster.catalog_coordinator import CatalogCoordinator
from kafkaesque.broker.cluster.catalog_voters import CatalogVoters
from kafkaesque.clock import Clock
from kafkaesque.cluster_config import ClusterConfig
from kafkaesque.errors import KafkaesqueError, OutcomeUnknown
from kafkaesque.events import Events, MovesBegun, MovesNotBegun
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_commands import CatalogAnswer, MovePartitions
from kafkaesque.machines.catalog.layout import Host, PlannedMove, is_lopsided, layout_of
from kafkaesque.machines.catalog.move_planning import plan
from kafkaesque.types import NodeId, Offset


class Reach(Protocol):
    """Which brokers are reachable from here."""

    @property
    def reachable(self) -> frozenset[NodeId]:
        """The other known brokers that were recently reachable."""
        ...

    def meet(self, nodes: Iterable[NodeId]) -> None:
        """Start to exchange beats with these brokers, to know whether they are reachable."""
        ...


class Caretaker:
    """The part of a broker that matters only on the leader of the catalog."""

    def __init__(
        self,
        coordinator: CatalogCoordinator,
        reach: Reach,
        clock: Clock,
        chance: random.Random,
        config: ClusterConfig,
        first: Iterable[NodeId],
        events: Events,
    ) -> None:
        self._coordinator = coordinator
        self._replica = replica = coordinator.replica
        self._node = replica.raft.node
        self._reach = reach
        self._clock = clock
        self._chance = chance
        self._config = config
        self._events = events
        self.absences = Absences(self._node, clock)
        self._voters = CatalogVoters(replica, self.absences, first, config.voter_replace_ms)
        self._look_at_ms = 0
        self._plan_at_ms = 0
        self._is_balancing = False
        self._at_rest: tuple[Offset, Mapping[NodeId, Host]] | None = None
        """The catalog and brokers for which there was nothing to do."""
        self._brokers = 0
        """The number of brokers at the last check: a new one waits to be let in."""

    def configure(self, config: ClusterConfig) -> None:
        """Apply new settings."""
        self._config = config

    def tick(self) -> None:
        """Advance time; check the cluster if that is due and we lead."""
        catalog = self._coordinator.catalog
        if catalog is None:
            self.absences.forget()
            self._is_balancing, self._at_rest = False, None
            return
        now_ms = self._clock.monotonic_ms()
        is_new = len(catalog.brokers) != self._brokers
        self._brokers = len(catalog.brokers)
        if now_ms < self._look_at_ms and not is_new:
            if self._voters.is_between:
                self._voters.look(catalog)
            return
        self._look_at_ms = now_ms + self._config.look_ms
        members = self._voters.members(catalog)
        self._reach.meet(members - {self._node})
        self.absences.look(members, self._reach.reachable)
        self._voters.note_commit()
        self._voters.look(catalog)
        if now_ms >= self._plan_at_ms:
            self._plan_at_ms = now_ms + self._config.plan_ms
            self._plan(catalog)

    def _plan(self, catalog: Catalog) -> None:
        hosts = self._hosts(catalog)
        now = self._replica.log.end_offset, hosts
        if now == self._at_rest:
            return
        layout = layout_of(catalog.topics.values())
        if self._config.auto_rebalance and is_lopsided(layout, hosts):
            self._is_balancing = True
        moves = plan(
            layout, hosts, self._chance, self._config.moves_max, balances=self._is_balancing
        )
        if moves:
            self._begin(catalog, moves)
        elif not layout.targets:
            self._is_balancing, self._at_rest = False, now

    def _hosts(self, catalog: Catalog) -> dict[NodeId, Host]:
        lost_ms = self._config.replica_replace_ms
        return {
            broker.node: Host(
                rack=broker.rack,
                is_live=self.absences.is_live(broker.node),
                is_lost=self.absences.absent_ms(broker.node) >= lost_ms,
                is_draining=broker.is_draining,
            )
            for broker in catalog.brokers.values()
            if broker.was_there
        }

    def _begin(self, catalog: Catalog, moves: Iterable[PlannedMove]) -> None:
        """Start moves, grouped by topic: each topic is one record of the catalog."""
        by_topic = groupby(sorted(moves), key=lambda move: move.topic_id)
        for topic_id, some in by_topic:
            wanted = [(move.topic_id, move.partition, list(move.nodes)) for move in some]
            name = catalog.topic_of_id(topic_id).name
            begun = partial(self._begun, name, len(wanted))
            self._coordinator.ask(MovePartitions(moves=wanted), begun)

    def _begun(self, topic: str, count: int, answer: CatalogAnswer) -> None:
        if not isinstance(answer, KafkaesqueError):
            self._events.tell(MovesBegun(topic=topic, count=count))
        elif not isinstance(answer, OutcomeUnknown):  # a full disk, or a leadership transfer
            self._events.tell(MovesNotBegun(topic=topic, reason=str(answer)))
