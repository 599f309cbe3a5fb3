"""Who there is, as far as one member knows, and what of it is still news to others."""

import random
from collections.abc import Iterable

from msgspec.structs import replace

from kafkaesque.cluster_config import GossipConfig
from kafkaesque.gossip.messages import Member, State
from kafkaesque.types import NodeId

_DOUBLINGS_MIN = 4
"""One that has just joined knows few, but is judged by many: it needs their patience."""


class Roll:
    """The members that one member knows, itself included."""

    def __init__(self, me: Member, config: GossipConfig, chance: random.Random) -> None:
        self.me = me
        self.members: dict[NodeId, Member] = {me.node: me}
        self.changes: dict[NodeId, Member] = {}
        """Whose state changed since the driver last looked, and to what."""
        self.now = 0
        """The present tick."""
        self.since: dict[NodeId, int] = {}
        """Since when others are what they are, if that is not alive."""
        self._config = config
        self._chance = chance
        self._told: dict[NodeId, int] = {me.node: 0}
        """How often each piece of news was passed on."""

    def others(self) -> list[Member]:
        """Return everyone else who may be spoken to."""
        return [m for m in self.members.values() if m.is_there and m.node != self.me.node]

    def doublings(self) -> int:
        """Return how often the cluster has doubled from one member; never less than for some."""
        return max(_DOUBLINGS_MIN, (len(self.others()) + 1).bit_length())

    def hear(self, news: Iterable[Member]) -> list[Member]:
        """Take what another says of members; the higher word on each counts.

        Returns what the other is to be told, because what it says was contradicted long ago.

        That one is dead is for each to find for itself: another's verdict is taken as a suspicion,
        against which the member can speak. Otherwise two halves of a cut network that meet again
        would each believe what the other says of it.
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
                # Of one that is gone there is nothing to learn, and it would never be forgotten.
                if heard.is_there and len(self.members) < self._config.members_max:
                    self._set(word)
            elif word.rank > known.rank:
                self._set(word)
            elif word.incarnation < known.incarnation and word.state is not State.ALIVE:
                contradicted.append(known)
        return contradicted

    def say(self, node: NodeId, state: State) -> None:
        """Say something of a member ourselves."""
        self._set(replace(self.members[node], state=state))

    def leave(self) -> None:
        """Say that we leave; nobody can say anything higher of us."""
        self._set_me(replace(self.me, state=State.LEFT))

    def forget(self, node: NodeId) -> None:
        """Drop a member."""
        del self.members[node]
        del self.since[node]
        self._told.pop(node, None)

    def news(self) -> tuple[Member, ...]:
        """Return what was passed on least so far, a packet full, and count it as passed on."""
        repeats_max = self._config.repeats * self.doublings()
        order = sorted(self._told, key=lambda node: (self._told[node], self._chance.random()))
        chosen = order[: self._config.updates_max]
        for node in chosen:
            self._told[node] += 1
            if self._told[node] >= repeats_max:
                del self._told[node]
        return tuple(self.members[node] for node in chosen)

    def _contradict(self, word: Member) -> None:
        """Have the last word on ourselves, also against what an earlier life of ours said."""
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
