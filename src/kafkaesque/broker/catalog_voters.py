"""Lets brokers into the catalog's group, and makes voters of them, while this broker leads it.

What is to be done is decided elsewhere (`machines/voter_choice.py`). Here it is found out who has
caught up, and done: one change at a time, and the next only after the last is committed.
"""

from collections.abc import Iterable, Mapping

from kafkaesque.broker.absences import Absences
from kafkaesque.broker.replica import Replica
from kafkaesque.errors import RaftError
from kafkaesque.machines.catalog import Catalog
from kafkaesque.machines.voter_choice import Seen, next_voters
from kafkaesque.raft.leadership import Leadership
from kafkaesque.raft.progress import Progress
from kafkaesque.types import Index, NodeId


class CatalogVoters:
    """Looks after the members of the catalog's group; `look` is called regularly by its leader."""

    def __init__(
        self, replica: Replica, absences: Absences, first: Iterable[NodeId], replace_ms: int
    ) -> None:
        self._replica = replica
        self._absences = absences
        self._unheard = set(first)
        """Members from the group's beginning of whom the catalog has never told."""
        self._replace_ms = replace_ms
        self._leadership: Leadership | None = None
        self._commits: tuple[Index, Index] = (0, 0)
        """How far everything was committed at the last two notes, in this leadership."""

    def members(self, catalog: Catalog) -> set[NodeId]:
        """Return who belongs to the group, or should."""
        self._unheard -= catalog.brokers.keys()
        return self._unheard | catalog.brokers.keys()

    @property
    def is_between(self) -> bool:
        """Whether the number of voters is one at which the group should not rest."""
        return len(self._replica.raft.voters.voters) % 2 == 0

    def note_commit(self) -> None:
        """Remember how far everything is committed now: who is to have caught up has that soon."""
        raft = self._replica.raft
        is_new = raft.leadership is not self._leadership
        self._leadership = raft.leadership
        self._commits = (raft.commit if is_new else self._commits[1]), raft.commit

    def look(self, catalog: Catalog) -> None:
        """Make the next change, if there is one to make and the last is done."""
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
                replica.change_voters(wanted, _ignore)
        except RaftError:
            return  # at the next look, if we still lead

    def _seen(self, catalog: Catalog, leadership: Leadership) -> Mapping[NodeId, Seen]:
        """Return how every broker does.

        Who has by now what was committed a moment ago has caught up: to ask for all that is
        committed now would be in vain while much is written.
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
        """Let another lead before we go, to spare the group an election; False if none can."""
        raft = self._replica.raft
        able = [n for n in raft.voters.voters if n != raft.node and n in brokers]
        able = [n for n in able if brokers[n].may_vote]
        if not able:
            return False
        self._replica.transfer(able[0])
        return True


def _has(progress: Progress, commit: Index) -> bool:
    """Whether a member has this much, and its vote would count: one that is refilled tells none."""
    return progress.match >= commit and progress.commit >= commit


def _holds_something(catalog: Catalog, node: NodeId) -> bool:
    return any(
        node in topic.holders(index)
        for topic in catalog.topics.values()
        for index in range(topic.partitions)
    )


def _ignore(_: object) -> None:
    """The next look shows what became of it."""
