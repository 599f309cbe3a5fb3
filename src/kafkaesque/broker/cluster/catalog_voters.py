"""Adds brokers to the catalog's group, and makes them voters, while this broker leads it.

`machines/catalog/voter_choice.py` decides what to do. This module finds out which brokers have
caught up, and carries it out: one change at a time, the next only after the last is committed.
"""

from collections.abc import Iterable, Mapping

from kafkaesque.broker.cluster.absences import Absences
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.callbacks import ignore
from kafkaesque.errors import RaftError
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.voter_choice import Seen, next_voters
from kafkaesque.raft.leadership import Leadership
from kafkaesque.raft.progress import Progress
from kafkaesque.types import Index, NodeId


class CatalogVoters:
    """Manages the members of the catalog's group; its leader calls `look` regularly."""

    def __init__(
        self, replica: Replica, absences: Absences, first: Iterable[NodeId], replace_ms: int
    ) -> None:
        self._replica = replica
        self._absences = absences
        self._unheard = set(first)
        """Members from the group's start that the catalog has never listed."""
        self._replace_ms = replace_ms
        self._leadership: Leadership | None = None
        self._commits: tuple[Index, Index] = (0, 0)
        """The commit at the last two notes, in this leadership."""

    def members(self, catalog: Catalog) -> set[NodeId]:
        """Return the brokers that belong to the group, or should."""
        self._unheard -= catalog.brokers.keys()
        return self._unheard | catalog.brokers.keys()

    @property
    def is_between(self) -> bool:
        """Whether the number of voters is one at which the group should not rest."""
        return len(self._replica.raft.voters.voters) % 2 == 0

    def note_commit(self) -> None:
        """Remember the commit: a replica counts as caught up when it soon has it."""
        raft = self._replica.raft
        is_new = raft.leadership is not self._leadership
        self._leadership = raft.leadership
        self._commits = (raft.commit if is_new else self._commits[1]), raft.commit

    def look(self, catalog: Catalog) -> None:
        """Make the next change, if one is needed and the last is done."""
        replica, raft = self._replica, self._replica.raft
        leadership = raft.leadership
        if leadership is None or leadership is not self._leadership or not replica.is_serving:
            return
        if raft.voters_index >= raft.commit or leadership.transferee is not None:
            return
        brokers = self._seen(catalog, leadership)
        wanted = next_voters(raft.voters, brokers, raft.node)
        if wanted is None:
            return
        try:
            if raft.node in wanted.voters or not self._hand_over(brokers):
                replica.change_voters(wanted, ignore)  # the next look shows the outcome
        except RaftError:
            return  # retried at the next look, if we still lead

    def _seen(self, catalog: Catalog, leadership: Leadership) -> Mapping[NodeId, Seen]:
        """Return the state of every broker.

        A replica that has what was committed a moment ago has caught up: requiring the current
        commit would never succeed under heavy writes.
        """
        seen: dict[NodeId, Seen] = {}
        commit = self._commits[0]
        for node in sorted(self.members(catalog)):
            known = catalog.brokers.get(node)
            progress = leadership.progress.get(node)
            is_leader = node == self._replica.raft.node
            is_leaving = known is not None and known.is_draining
            seen[node] = Seen(
                rack="" if known is None else known.rack,
                is_live=is_leader or self._absences.is_live(node),
                has_caught_up=is_leader or (progress is not None and _has(progress, commit)),
                is_lost=self._absences.absent_ms(node) >= self._replace_ms,
                is_leaving=is_leaving,
                is_empty=is_leaving and not _holds_something(catalog, node),
                was_there=known is not None and known.was_there,
            )
        return seen

    def _hand_over(self, brokers: Mapping[NodeId, Seen]) -> bool:
        """Transfer leadership before we leave, to spare an election; False if impossible."""
        raft = self._replica.raft
        able = [n for n in raft.voters.voters if n != raft.node and n in brokers]
        able = [n for n in able if brokers[n].may_vote]
        if not able:
            return False
        self._replica.transfer(able[0])
        return True


def _has(progress: Progress, commit: Index) -> bool:
    """Whether a member has this much, and its vote would count: one being refilled reports 0."""
    return progress.match >= commit and progress.commit >= commit


def _holds_something(catalog: Catalog, node: NodeId) -> bool:
    return any(
        node in topic.holders(index)
        for topic in catalog.topics.values()
        for index in range(topic.partitions)
    )
