"""Invariants of whole brokers after every step, in addition to those of their groups.

- catalog copies are equal wherever they have applied equally much;
- the newest term of a group that a broker knows never decreases while the broker runs, so that its
  Metadata never names a leader of an older term again;
- the broker named as the leader of a term is the one that was elected in it;
- records acknowledged to acks=all are durable on a majority, and on as many replicas as the topic
  wants; no leader counts a replica as in sync whose broker is long dead;
- no producer id is given twice, no committed offset of a group goes back, and a confirmed topic
  stays, unless a client deletes it.
"""

from collections.abc import Collection, Mapping

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, folder_of
from kafkaesque.raft.messages import AppendAccepted
from kafkaesque.raft.quorum import majority
from kafkaesque.sim.checks import GroupChecks, Violation
from kafkaesque.types import GroupId, Index, NodeId, Offset, Term


class BrokerChecks:
    """The history of one cluster of brokers."""

    def __init__(self, groups: Mapping[GroupId, GroupChecks]) -> None:
        self._groups = groups
        self._catalogs: dict[Offset, frozenset[object]] = {}
        self._applied: dict[tuple[NodeId, int], Offset] = {}
        self._terms: dict[tuple[NodeId, int, GroupId], Term] = {}
        self._producer_ids: set[int] = set()
        self._accepted: dict[tuple[GroupId, Term], dict[NodeId, Index]] = {}
        self._missed: dict[tuple[NodeId, int], dict[NodeId, int]] = {}
        """For how many ticks of a broker's run others have been dead."""
        self._compared_from: dict[tuple[NodeId, int], Offset] = {}
        """How far others were when a run started: a copy rebuilt from a compacted log lacks
        superseded records, until it has come as far.
        """

    def after_step(self, node: NodeId, life: int, broker: Broker) -> None:
        """Check the changes that the last step made on one broker."""
        self._compare_catalog(node, life, broker)
        topics = broker.committed_catalog.machine.topics.values()
        folders = {CATALOG_GROUP, *(folder_of(topic) for topic in topics)}
        for group, (term, leader) in broker.leaders.known.items():
            if group.partition("/")[0] not in folders:
                continue  # other brokers may still report a deleted topic
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

    def accepted(self, group: GroupId, message: AppendAccepted) -> None:
        """Record up to where a follower durably holds its leader's log."""
        held = self._accepted.setdefault((group, message.term), {})
        held[message.source] = max(message.match, held.get(message.source, 0))

    def acknowledged(self, replica: Replica, end: Index, copies: int) -> None:
        """Check a leader's acknowledgement to acks=all up to `end`; `copies` are wanted."""
        raft = replica.raft
        held = {**self._accepted.get((replica.group, raft.term), {}), raft.node: replica.log.stable}
        voters = raft.voters.voters
        found = sum(1 for node in voters if held.get(node, -1) >= end)
        wanted = max(majority(len(voters)), copies)
        if found < wanted:
            raise Violation(f"{replica.group} acknowledged with {found} copies, not {wanted}")

    def ticked(self, node: NodeId, life: int, broker: Broker, dead: Collection[NodeId]) -> None:
        """Record a broker's tick while these others are dead."""
        before = self._missed.get((node, life), {})
        missed = self._missed[node, life] = {one: before.get(one, 0) + 1 for one in dead}
        raft = broker.config.raft
        ticks_max = 2 * (raft.election_ticks + raft.heartbeat_ticks)
        gone = {one for one, ticks in missed.items() if ticks > ticks_max}
        for replica in broker.replicas.by_group.values():
            counted = () if replica.in_sync is None else replica.in_sync.nodes
            if gone.intersection(counted):
                raise Violation(f"{replica.group} counts the dead as in sync: {counted}")

    def gave_producer_id(self, producer_id: int) -> None:
        """Record the producer id that a client got."""
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
        # Which broker's files are still to be removed is local to each broker.
        records: frozenset[object] = frozenset(r for r in copy.machine.records() if r.value)
        known = self._catalogs.setdefault(copy.applied, records)
        if known != records:
            raise Violation(f"two catalogs at offset {copy.applied}, one on broker {node}")
