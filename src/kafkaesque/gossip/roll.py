"""The members that one member knows, and the news it still has to pass on."""

import random
from collections.abc import Iterable

from msgspec.structs import replace

from kafkaesque.gossip.config import GossipConfig
from kafkaesque.gossip.messages import Member, State
from kafkaesque.types import NodeId

_DOUBLINGS_MIN = 4
"""A member that has just joined knows few, but many judge it: it needs their patience."""


class Roll:
    """The members that one member knows, itself included."""

    def __init__(self, me: Member, config: GossipConfig, chance: random.Random) -> None:
        self.me = me
        self.members: dict[NodeId, Member] = {me.node: me}
        self.changes: dict[NodeId, Member] = {}
        """Members changed since the driver's last call, with their new state."""
        self.now = 0
        """The current tick."""
        self.since: dict[NodeId, int] = {}
        """The tick since which each non-alive member has had its state."""
        self._config = config
        self._chance = chance
        self._told: dict[NodeId, int] = {me.node: 0}
        """How often each piece of news was passed on."""

    def others(self) -> list[Member]:
        """Return all other members that may be contacted."""
        return [m for m in self.members.values() if m.is_there and m.node != self.me.node]

    def doublings(self) -> int:
        """Return about log2 of the cluster's size, with a minimum for small clusters."""
        return max(_DOUBLINGS_MIN, (len(self.others()) + 1).bit_length())

    def hear(self, news: Iterable[Member]) -> list[Member]:
        """Merge another member's claims; the higher claim about each member wins.

        Returns what to send back, because the other's claims were contradicted long ago.

        Each member must find out for itself that another is dead: a foreign verdict counts only as
        a suspicion, which the member can contradict. Otherwise two halves of a partitioned network
        that meet again would each believe the other's verdicts.
        """
        contradicted = []
        for heard in news:
            is_verdict = heard.state is State.DEAD
            word = replace(heard, state=State.SUSPECT) if is_verdict else heard
            if word.node == self.me.node:
                self._contradict(word)
                continue
            known = self.members.get(word.node)
            if known is None:
                # A member that is gone is no news, and would never be forgotten.
                if heard.is_there and len(self.members) < self._config.members_max:
                    self._set(word)
            elif word.rank > known.rank:
                self._set(word)
            elif word.incarnation < known.incarnation and word.state is not State.ALIVE:
                contradicted.append(known)
        return contradicted

    def say(self, node: NodeId, state: State) -> None:
        """Make our own claim about a member."""
        self._set(replace(self.members[node], state=state))

    def leave(self) -> None:
        """Announce that we leave; no claim about us can be higher."""
        self._set_me(replace(self.me, state=State.LEFT))

    def forget(self, node: NodeId) -> None:
        """Drop a member."""
        del self.members[node]
        del self.since[node]
        self._told.pop(node, None)

    def news(self) -> tuple[Member, ...]:
        """Return the news passed on least so far, one packet full, and count it as passed on."""
        repeats_max = self._config.repeats * self.doublings()
        order = sorted(self._told, key=lambda node: (self._told[node], self._chance.random()))
        chosen = order[: self._config.updates_max]
        for node in chosen:
            self._told[node] += 1
            if self._told[node] >= repeats_max:
                del self._told[node]
        return tuple(self.members[node] for node in chosen)

    def _contradict(self, word: Member) -> None:
        """Overrule claims about ourselves, including those of an earlier run of ours."""
        if word != self.me and word.rank >= self.me.rank and self.me.state is not State.LEFT:
            self._set_me(replace(self.me, incarnation=word.incarnation + 1))

    def _set_me(self, me: Member) -> None:
        self.me = me
        self._set(me)

    def _set(self, member: Member) -> None:
        self.members[member.node] = member
        self._told[member.node] = 0
        self.changes[member.node] = member
        if member.state is State.ALIVE or member.node == self.me.node:
            self.since.pop(member.node, None)
        else:
            self.since[member.node] = self.now
