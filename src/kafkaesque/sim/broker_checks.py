"""What must hold of whole brokers after every step, beside what holds of their groups.

- catalog copies are equal wherever they have applied equally much;
- the newest term of a group that a broker knows of never goes back while the broker lives, so that
  its Metadata never names a leader of an older term again;
- whoever is named as the leader of a term is the one who was elected in it;
- no producer id is given twice, no offset that a group was promised goes back, and a topic that was
  promised stays, unless somebody asks for its end.
"""

from collections.abc import Mapping

from kafkaesque.broker.broker import CATALOG_GROUP, Broker
from kafkaesque.broker.topics import folder_of
from kafkaesque.sim.checks import GroupChecks, Violation
from kafkaesque.types import GroupId, NodeId, Offset, Term


class BrokerChecks:
    """The history of one cluster of brokers."""

    def __init__(self, groups: Mapping[GroupId, GroupChecks]) -> None:
        self._groups = groups
        self._catalogs: dict[Offset, frozenset[object]] = {}
        self._applied: dict[tuple[NodeId, int], Offset] = {}
        self._terms: dict[tuple[NodeId, int, GroupId], Term] = {}
        self._producer_ids: set[int] = set()
        self._compared_from: dict[tuple[NodeId, int], Offset] = {}
        """How far others were when a life began: a copy that is rebuilt from a compacted log lacks
        what was superseded later, until it has come as far."""

    def after_step(self, node: NodeId, life: int, broker: Broker) -> None:
        """Check what the last step changed on one broker."""
        self._compare_catalog(node, life, broker)
        topics = broker.committed_catalog.machine.topics.values()
        folders = {CATALOG_GROUP, *(folder_of(topic) for topic in topics)}
        for group, (term, leader) in broker.leaders.known.items():
            if group.partition("/")[0] not in folders:
                continue  # of a deleted topic somebody may still tell
            key = node, life, group
            if term < self._terms.get(key, 0):
                raise Violation(f"broker {node} knew a later term of {group} than {term}")
            self._terms[key] = term
            if leader is None or group not in self._groups:
                continue
            elected = self._groups[group].leaders.get(term)
            if elected != leader:
                raise Violation(
                    f"broker {node} names {leader} as the leader of {group} in term {term},"
                    f" elected was {elected}"
                )

    def gave_producer_id(self, producer_id: int) -> None:
        """A client was given a producer id."""
        if producer_id in self._producer_ids:
            raise Violation(f"producer id {producer_id} was given twice")
        self._producer_ids.add(producer_id)

    def _compare_catalog(self, node: NodeId, life: int, broker: Broker) -> None:
        copy = broker.committed_catalog
        if self._applied.get((node, life)) == copy.applied:
            return
        self._applied[node, life] = copy.applied
        furthest = max(self._catalogs, default=0)
        if copy.applied < self._compared_from.setdefault((node, life), furthest):
            return
        # Whose files are still to be removed is each broker's own business.
        records: frozenset[object] = frozenset(r for r in copy.machine.records() if r.value)
        known = self._catalogs.setdefault(copy.applied, records)
        if known != records:
            raise Violation(f"two catalogs at offset {copy.applied}, one on broker {node}")
