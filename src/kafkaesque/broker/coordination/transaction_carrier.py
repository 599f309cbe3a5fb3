"""Carries requests between coordinators and leaders to the brokers that they are on.

Calls are direct if the target is on this broker. All other requests go out through `Peers`, and are
retried until answered:

- A leader is asked to write a marker as the leader of a term. If it was re-elected meanwhile it
  refuses: such a late marker could end the producer's next transaction.
- A topic missing from this broker's copy of the catalog may have been deleted, or the copy lags.
  Skipping the marker would leave the transaction open in its partition for ever. So a change is
  written into the catalog first. If the topic is still missing when the copy has caught up with
  that change, it is gone: the coordinator had seen it when its partition was added.
"""

from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeAlias

from kafkaesque.broker.cluster.calls import TRANSACTION
from kafkaesque.broker.cluster.peers import Peers
from kafkaesque.broker.coordination.transactions import STATE_TOPIC, BrokerTransactions
from kafkaesque.broker.machine_hosting.machine_follower import MachineFollower
from kafkaesque.broker.partition.transaction_ports import Checked, Told
from kafkaesque.broker.replication.leader_table import Leader
from kafkaesque.errors import NotCoordinator, OutcomeUnknown, UnknownTopic
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_commands import (
    AnswerTo,
    Carried,
    CatalogAnswer,
    CatalogCommand,
    TakeProducerIds,
)
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.machines.transactions.transaction_questions import (
    Allowed,
    Answer,
    Check,
    EndThere,
    Marked,
    Marker,
    to_error,
)
from kafkaesque.machines.transactions.transaction_records import Place
from kafkaesque.types import GroupId, NodeId, Term

GONE_MAX = 1_000
"""Ids of deleted topics to remember, so that each is looked up once."""

_Way: TypeAlias = tuple[int, int, int, Term, Place, Leader]
"""A marker in flight: producer, epoch, transaction, coordinator's term, partition and target."""


class House(Protocol):
    """What it needs of the broker."""

    node: NodeId
    transactions: BrokerTransactions

    @property
    def catalog(self) -> Catalog:
        """The catalog as this broker knows it."""
        ...

    @property
    def committed_catalog(self) -> MachineFollower[Catalog]:
        """This broker's copy of what is committed of the catalog."""
        ...

    def leader_of(self, group: GroupId) -> Leader:
        """Return a group's leader, as far as known here."""
        ...

    def coordinator_of(self, key: str, topic_name: str) -> NodeId | None:
        """Return the broker that coordinates an id."""
        ...

    def ask(self, command: CatalogCommand, to: AnswerTo) -> None:
        """Have the catalog changed."""
        ...


class TransactionCarrier:
    """Both ports of `broker/partition/transaction_ports.py`, for a broker of a cluster."""

    def __init__(self, house: House, peers: Peers) -> None:
        self._house = house
        self._peers = peers
        self._under_way: set[_Way] = set()
        self._looked_for: set[bytes] = set()
        self._gone: dict[bytes, None] = {}

    # ── to coordinators ──────────────────────────────────────────────────────────────────────

    def check(self, check: Check, checked: Checked) -> None:
        """Ask a transaction's coordinator, on whichever broker it is."""
        node = self._house.coordinator_of(check.transactional_id, STATE_TOPIC)
        if node is None:
            checked(NotCoordinator("the transaction's coordinator is unknown"))
            return
        if node == self._house.node:
            self._house.transactions.check(check, checked)
            return

        def replied(answer: Answer) -> None:
            if isinstance(answer, Allowed):
                checked(answer.number)
            else:
                checked(to_error(answer))

        self._peers.ask(node, TRANSACTION, check, replied)

    # ── to leaders ───────────────────────────────────────────────────────────────────────────

    def write(self, marker: Marker, places: Sequence[Place], told: Told) -> None:
        """Have the leaders of these partitions write a marker.

        If it is already in flight to the same leader, only the first caller is notified.
        """
        house = self._house
        shares: dict[NodeId, list[tuple[Place, Leader]]] = {}
        for place in places:
            topic = house.catalog.topic_by_id(place[0])
            if topic is None:
                self._look_for(place, told)
                continue
            leader = house.leader_of(group_of(topic, place[1]))
            if leader.node is None or leader.node == house.node:
                house.transactions.write(marker, [place], told)
            else:
                shares.setdefault(leader.node, []).append((place, leader))
        for node, share in shares.items():
            self._send(marker, node, share, told)

    def _send(
        self, marker: Marker, node: NodeId, share: Sequence[tuple[Place, Leader]], told: Told
    ) -> None:
        who = marker.producer_id, marker.epoch, marker.number, marker.coordinator_term
        ways: list[_Way] = [(*who, place, leader) for place, leader in share]
        ways = [way for way in ways if way not in self._under_way]
        if not ways:
            return
        self._under_way.update(ways)

        def replied(answer: Answer) -> None:
            self._under_way.difference_update(ways)
            settled = answer.settled if isinstance(answer, Marked) else ()
            for *_, place, _ in ways:
                is_settled = place in settled
                told(place, None if is_settled else OutcomeUnknown("its leader did not confirm it"))

        question = EndThere(
            producer_id=marker.producer_id,
            epoch=marker.epoch,
            is_commit=marker.is_commit,
            coordinator_term=marker.coordinator_term,
            number=marker.number,
            places=[(*place, leader.term) for *_, place, leader in ways],
        )
        self._peers.ask(node, TRANSACTION, question, replied)

    # ── topics that may be gone ──────────────────────────────────────────────────────────────

    def _look_for(self, place: Place, told: Told) -> None:
        """Report UnknownTopic for a partition once that is certain."""
        topic_id = place[0]
        if topic_id in self._gone:
            told(place, UnknownTopic("the topic was deleted"))
            return
        if topic_id in self._looked_for:
            return  # it will be retried
        self._looked_for.add(topic_id)

        def answered(answer: CatalogAnswer) -> None:
            if not isinstance(answer, Carried):
                self._looked_for.discard(topic_id)
                return
            copy = self._house.committed_catalog
            copy.when_applied(answer.end, partial(self._looked, answer.end, place, told))

        # The broker that carries it out leads the catalog, and has all earlier decisions.
        self._house.ask(TakeProducerIds(count=1), answered)

    def _looked(self, end: int, place: Place, told: Told) -> None:
        topic_id = place[0]
        self._looked_for.discard(topic_id)
        copy = self._house.committed_catalog
        if copy.applied < end or copy.machine.topic_by_id(topic_id) is not None:
            return
        self._gone[topic_id] = None
        if len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]
        told(place, UnknownTopic("the topic was deleted"))
