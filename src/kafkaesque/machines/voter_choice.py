"""Who keeps the catalog: which change of its voters comes next, as a pure function.

Every broker that the catalog knows is a member of its group: a voter, or a learner. Voters are
one, three or five, as many as there are brokers for, and never rest at two or four: two voters
survive less than one, four no more than three. Raft changes one voter at a time, so a step from one
to three passes through two. It is begun only when both newcomers are there with everything, and
whoever finds an even number goes on, or goes back.

    1 → 3 → 5   two learners are live and have caught up, and every voter is live
    replace     a voter is lost, drained or no broker any more: its successor comes, then it goes
    apart       a learner stands in a rack in which no voter is: it comes, then one too many goes
    5 → 3 → 1   voters are drained, or two are lost, and nobody can take their place

Nothing is remembered between two steps: what the group looks like says how to go on, whoever leads.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from kafkaesque.entry import Voters
from kafkaesque.types import NodeId

VOTERS_MAX = 5
"""Two may fail. More voters make every change of the catalog slower, and hardly safer."""

_STEP = 2
"""Voters that come together, so that their number is odd again."""


class Seen(Struct, frozen=True, kw_only=True):
    """A broker of the catalog, as the leader of the catalog sees it."""

    rack: str = ""
    """Empty for nowhere in particular."""
    is_live: bool = True
    """Whether a word of ours and its echo went both ways of late."""
    has_caught_up: bool = True
    """Whether it lately had all that was committed then."""
    is_lost: bool = False
    """Whether it has been out of reach for so long that another shall vote in its place."""
    is_leaving: bool = False
    """Whether it is being drained: somebody else shall vote in its place, if there is one."""
    is_empty: bool = False
    """Whether it has been drained and holds nothing any more: it shall not vote in any case."""
    was_there: bool = True
    """Whether it has told of itself; one that was only admitted may learn, to be able to."""

    @property
    def may_vote(self) -> bool:
        """Whether it would make a good voter now."""
        return self.was_there and self.is_live and self.has_caught_up and not self.is_leaving


def next_voters(now: Voters, brokers: Mapping[NodeId, Seen], leader: NodeId) -> Voters | None:
    """Return the group after its next change, None if it is as it should be.

    `brokers` are all of the catalog; its `leader` is live and has everything, and may be about to
    leave. Learners come and go at any time, voters one at a time.
    """
    voters = _Choice(frozenset(now.voters), brokers, leader).next()
    learners = brokers.keys() - now.voters
    if set(now.learners) == learners and voters != set(now.voters):
        # One that leaves the voters is still a broker, most of the time.
        learners = brokers.keys() - voters
    else:
        voters = frozenset(now.voters)
    wanted = Voters(voters=tuple(sorted(voters)), learners=tuple(sorted(learners)))
    return None if wanted == now else wanted


class _Choice:
    """One look at the group."""

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
        """Return the voters after the next change, or the same."""
        wanted = self._wanted()
        live = sum(1 for node in wanted if self._is_live(node))
        # A change is in force before it is committed: without a majority it would be the last.
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
        """Go on if somebody is there to go on with, else go back."""
        if self._outgoing:
            return self._voters - {self._outgoing[0]}
        if self._free and len(self._voters) < VOTERS_MAX:
            return self._voters | {self._best(self._voters)}
        return self._voters - {self._worst()}

    def _replacing(self) -> frozenset[NodeId]:
        """Let a successor in first: with it the old majority still counts, and one more."""
        if self._free:
            return self._voters | {self._best(self._voters - set(self._outgoing))}
        if len(self._voters) > 1 and self._gone:
            return self._voters - {self._gone[0]}
        if len(self._lost) >= _STEP and len(self._voters) > _STEP + 1:
            return self._voters - {self._lost[0]}
        return self._voters  # better a voter that may come back than one less

    def _apart(self) -> frozenset[NodeId]:
        if not self._free:
            return self._voters
        more = self._voters | {self._best(self._voters)}
        fewer = max(self._spread(more - {node}) for node in self._voters)
        return more if fewer > self._spread(self._voters) else self._voters

    def _best(self, staying: Collection[NodeId]) -> NodeId:
        return max(self._free, key=lambda node: (self._spread([*staying, node]), -node))

    def _worst(self) -> NodeId:
        """Who goes if one must: who is out of reach, then who shares its rack, the leader last."""
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
        """Return in how many places these are; without a rack each is in its own."""
        known = [(node, self._brokers[node].rack) for node in nodes if node in self._brokers]
        return len({rack or node for node, rack in known})

    def _is_live(self, node: NodeId) -> bool:
        if node == self._leader:
            return True
        seen = self._brokers.get(node)
        return seen is not None and seen.is_live
