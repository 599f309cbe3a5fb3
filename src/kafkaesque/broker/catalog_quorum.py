"""The state of the catalog's group, as its leader sees it."""

from msgspec import Struct

from kafkaesque.broker.broker import Broker
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.types import NodeId, Offset, Term


class Member(Struct, frozen=True, kw_only=True):
    """One member of the group."""

    node: NodeId
    end: Offset
    """Where its log ends, as far as reported; 0 if never."""

    silent_ms: int
    """How long ago it last answered; 0 for the leader."""


class Quorum(Struct, frozen=True, kw_only=True):
    """The group of the catalog."""

    leader: NodeId
    term: Term
    high_watermark: Offset
    voters: tuple[Member, ...]
    learners: tuple[Member, ...]


def quorum_of(broker: Broker) -> Quorum | None:
    """Return the state of the catalog's group; None if it is not led here."""
    replica = broker.replicas.by_group.get(CATALOG_GROUP)
    if replica is None or not replica.is_serving:
        return None
    raft, log, leadership = replica.raft, replica.log, replica.raft.leadership
    assert leadership is not None, "it serves"

    def member(node: NodeId) -> Member:
        progress = leadership.progress.get(node)
        if node == raft.node or progress is None:
            end = log.end_offset if node == raft.node else 0
            return Member(node=node, end=end, silent_ms=0)
        match = max(progress.match, log.start.index)
        ticks = leadership.ticks - progress.answered_at
        return Member(node=node, end=log.offset_at(match), silent_ms=ticks * broker.config.tick_ms)

    return Quorum(
        leader=raft.node,
        term=raft.term,
        high_watermark=replica.high_watermark,
        voters=tuple(map(member, raft.voters.voters)),
        learners=tuple(map(member, raft.voters.learners)),
    )


def catalog_lag(broker: Broker) -> int:
    """Return how many offsets the copy lags behind the commit known here."""
    replica = broker.replicas.by_group.get(CATALOG_GROUP)
    if replica is None:
        return 0
    return max(0, replica.high_watermark - broker.committed_catalog.applied)
