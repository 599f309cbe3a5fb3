"""Which change of the catalog's voters comes next, as a pure function.

Every broker that the catalog knows is a member of its group: a voter, or a learner. There are one,
three or five voters, as many as there are brokers for, and never two or four for long: two voters
survive less than one, four no more than three. Raft changes one voter at a time, so growing from
one to three passes through two. That starts only once both new voters are there and caught up, and
a leader that finds an even number goes on, or goes back.

    1 → 3 → 5   two learners are live and have caught up, and every voter is live
    replace     a voter is lost, drained or no broker any more: its successor comes, then it goes
    apart       a learner stands in a rack without a voter: it comes, then one too many goes
    5 → 3 → 1   voters are drained, or two are lost, and none can take their place

Nothing is remembered between two steps: any leader can tell from the group how to go on.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from kafkaesque.entry import Voters
from kafkaesque.types import NodeId

VOTERS_MAX = 5
"""Two may fail. More voters slow down every change of the catalog and add little safety."""

_STEP = 2
"""Voters that are added together, so that their number is odd again."""


class Seen(Struct, frozen=True, kw_only=True):
    """A broker as the catalog's leader sees it."""

    rack: str = ""
    """Empty if unknown."""
    is_live: bool = True
    """Whether a message and its echo have recently passed both ways."""
    has_caught_up: bool = True
    """Whether it recently had everything committed at that time."""
    is_lost: bool = False
    """Whether it has been out of reach so long that another should vote in its place."""
    is_leaving: bool = False
    """Whether it is being drained: another should vote in its place, if there is one."""
    is_empty: bool = False
    """Whether it was drained and holds nothing: it must not vote in any case."""
    was_there: bool = True
    """Whether it has registered; one that was only admitted may be a learner, to get there."""

    @property
    def may_vote(self) -> bool:
        """Whether it would make a good voter now."""
        return self.was_there and self.is_live and self.has_caught_up and not self.is_leaving


def next_voters(now: Voters, brokers: Mapping[NodeId, Seen], leader: NodeId) -> Voters | None:
    """Return the group after its next change, or None if it is as it should be.

    `brokers` are all those of the catalog; its `leader` is live and has everything, and may be
    about to leave. Learners come and go at any time, voters one at a time.
    """
    voters = _Choice(frozenset(now.voters), brokers, leader).next()
    learners = brokers.keys() - now.voters
    if set(now.learners) == learners and voters != set(now.voters):
        # A broker that stops voting usually remains a broker.
        learners = brokers.keys() - voters
    else:
        voters = frozenset(now.voters)
    wanted = Voters(voters=tuple(sorted(voters)), learners=tuple(sorted(learners)))
    return None if wanted == now else wanted


class _Choice:
    """One evaluation of the group."""

    def __init__(
        self, voters: frozenset[NodeId], brokers: Mapping[NodeId, Seen], leader: NodeId
    ) -> None:
        self._voters = voters
        self._brokers = brokers
        self._leader = leader
        self._free = sorted(n for n in brokers if n not in voters and brokers[n].may_vote)
        self._gone = sorted(n for n in voters if n not in brokers or brokers[n].is_empty)
        known = sorted(voters - set(self._gone))
        self._lost = [node for node in known if brokers[node].is_lost]
        leaving = [node for node in known if brokers[node].is_leaving and node not in self._lost]
        self._outgoing = [*self._gone, *self._lost, *leaving]

    def next(self) -> frozenset[NodeId]:
        """Return the voters after the next change, or the same ones."""
        wanted = self._wanted()
        live = sum(1 for node in wanted if self._is_live(node))
        # A change is in force before it is committed: without a majority none could follow.
        return wanted if live > len(wanted) // 2 else self._voters

    def _wanted(self) -> frozenset[NodeId]:
        if len(self._voters) % 2 == 0:
            return self._made_odd()
        if self._outgoing:
            return self._replacing()
        if all(map(self._is_live, self._voters)):
            has_room = len(self._voters) + _STEP <= VOTERS_MAX
            if has_room and len(self._free) >= _STEP:
                return self._voters | {self._best(self._voters)}
            return self._apart()
        return self._voters

    def _made_odd(self) -> frozenset[NodeId]:
        """Add a voter if there is one to add, else go back."""
        if self._outgoing:
            return self._voters - {self._outgoing[0]}
        if self._free and len(self._voters) < VOTERS_MAX:
            return self._voters | {self._best(self._voters)}
        return self._voters - {self._worst()}

    def _replacing(self) -> frozenset[NodeId]:
        """Add a successor first: with it the old majority still counts, and one more."""
        if self._free:
            return self._voters | {self._best(self._voters - set(self._outgoing))}
        if len(self._voters) > 1 and self._gone:
            return self._voters - {self._gone[0]}
        if len(self._lost) >= _STEP and len(self._voters) > _STEP + 1:
            return self._voters - {self._lost[0]}
        return self._voters  # a voter that may come back beats one less

    def _apart(self) -> frozenset[NodeId]:
        if not self._free:
            return self._voters
        more = self._voters | {self._best(self._voters)}
        fewer = max(self._spread(more - {node}) for node in self._voters)
        return more if fewer > self._spread(self._voters) else self._voters

    def _best(self, staying: Collection[NodeId]) -> NodeId:
        return max(self._free, key=lambda node: (self._spread([*staying, node]), -node))

    def _worst(self) -> NodeId:
        """Return the voter to remove: an unreachable one, one sharing a rack, the leader last."""
        return max(
            self._voters,
            key=lambda node: (
                not self._is_live(node),
                self._spread(self._voters - {node}),
                node != self._leader,
                node,
            ),
        )

    def _spread(self, nodes: Iterable[NodeId]) -> int:
        """Return in how many racks these are; a broker without a rack counts as its own."""
        known = [(node, self._brokers[node].rack) for node in nodes if node in self._brokers]
        return len({rack or node for node, rack in known})

    def _is_live(self, node: NodeId) -> bool:
        if node == self._leader:
            return True
        seen = self._brokers.get(node)
        return seen is not None and seen.is_live
