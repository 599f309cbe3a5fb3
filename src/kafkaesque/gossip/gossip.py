"""SWIM-style discovery: each member pings another each period, and news rides along.

    alive ──no answer, directly or through helpers──▶ suspect ──uncontradicted──────▶ dead
      ▲                                                 │                              │
      └──────── the member itself, with a higher incarnation ◀──────────────────────────┘
    any ──its own notice──▶ left

In a cluster of any size each member pays the same: one ping a period. News travels on pings and
answers, and reaches everyone in about log N periods. Now and then two members compare all they
know, including dead members; that heals a cluster split by a partitioned network.

Gossip spreads addresses. Whether a leader is alive, only the links to it decide. No clock and no
I/O here: the driver ticks, sends the returned packets, and hands in received ones.
"""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from kafkaesque.gossip.config import GossipConfig
from kafkaesque.gossip.messages import (
    Ack,
    Member,
    Packet,
    Ping,
    PingRequest,
    State,
    Sync,
)
from kafkaesque.gossip.roll import Roll
from kafkaesque.types import NodeId

Address: TypeAlias = tuple[str, int]


class Outgoing(NamedTuple):
    """A packet and its destination; it may be lost, duplicated or delayed."""

    address: Address
    packet: Packet


class _Probe(Struct):
    """This period's ping."""

    subject: NodeId
    number: int
    asked_at: int
    is_helped: bool = False


class _Relay(NamedTuple):
    """A member that waits for us to ping another on its behalf."""

    address: Address
    number: int
    asked_at: int


class Gossip:
    """One member's part. `seeds` are addresses to join by; without any it waits to be contacted."""

    def __init__(
        self,
        me: Member,
        seeds: Sequence[Address],
        config: GossipConfig,
        chance: random.Random,
    ) -> None:
        self._config = config
        self._chance = chance
        self._seeds = [seed for seed in seeds if seed != (me.host, me.port)]
        self._roll = Roll(me, config, chance)
        self._ticks = 0
        self._number = 0
        self._probe: _Probe | None = None
        self._round: list[NodeId] = []
        self._relays: dict[int, _Relay] = {}

    @property
    def me(self) -> Member:
        """The information about ourselves."""
        return self._roll.me

    @property
    def members(self) -> Mapping[NodeId, Member]:
        """All known members by node, ourselves included."""
        return self._roll.members

    def take_changes(self) -> list[Member]:
        """Return the changes since the last call."""
        changes, self._roll.changes = self._roll.changes, {}
        return list(changes.values())

    def leave(self) -> list[Outgoing]:
        """Announce our departure to a few members, who pass it on; send this, then stop."""
        self._roll.leave()
        return [self._sync_to((m.host, m.port)) for m in self._some_others(self._config.helpers)]

    def tick(self) -> list[Outgoing]:
        """Advance by one tick."""
        config = self._config
        self._ticks += 1
        self._roll.now = self._ticks
        out: list[Outgoing] = []
        probe = self._probe
        if self._ticks % config.period_ticks == 0:
            out += self._end_period()
        elif (
            probe is not None
            and not probe.is_helped
            and self._ticks - probe.asked_at >= config.answer_ticks
        ):
            probe.is_helped = True
            out += self._ask_helpers(probe)
        return out

    def receive(self, packet: Packet) -> list[Outgoing]:
        """Handle a packet; return the packets to send in response."""
        sender = packet.sender
        contradicted = self._roll.hear((sender, *packet.news))
        address = (sender.host, sender.port)
        match packet:
            case Ping():
                # Send our view of the sender along: it may have to contradict it.
                ack = self._ack(packet.number, sender.node)
                first = contradicted[: self._config.updates_max]
                return [Outgoing(address, replace(ack, news=(*first, *ack.news)))]
            case PingRequest():
                return self._help(packet, address)
            case Ack():
                return self._on_ack(packet)
            case Sync():
                return [] if packet.is_answer else [self._sync_to(address, is_answer=True)]
            case _:
                assert_never(packet)

    # ── one period ───────────────────────────────────────────────────────────────────────────

    def _end_period(self) -> list[Outgoing]:
        """Suspect a member that did not answer, then ping the next one."""
        period = self._ticks // self._config.period_ticks
        probe, self._probe = self._probe, None
        if probe is not None:
            found = self.members.get(probe.subject)
            if found is not None and found.state is State.ALIVE:
                self._roll.say(probe.subject, State.SUSPECT)
        self._judge()
        self._drop_relays()
        out = self._ask_next()
        others = self._roll.others()
        if not others or period % self._config.sync_periods == self.me.node % (
            self._config.sync_periods
        ):
            out += self._compare()
        return out

    def _judge(self) -> None:
        """Declare uncontradicted suspects dead, and forget members that are long gone."""
        config = self._config
        patience = config.suspicion_periods * self._roll.doublings() * config.period_ticks
        for node, since in list(self._roll.since.items()):
            member = self.members[node]
            waited = self._ticks - since
            if member.state is State.SUSPECT and waited >= patience:
                self._roll.say(node, State.DEAD)
            elif not member.is_there and waited >= config.forget_periods * config.period_ticks:
                self._roll.forget(node)

    def _ask_next(self) -> list[Outgoing]:
        """Ping the next of a shuffled round, so that no member waits longer than two rounds."""
        there = {member.node for member in self._roll.others()}
        while self._round and self._round[-1] not in there:  # terminates: each turn removes one
            self._round.pop()
        if not self._round:
            self._round = sorted(there)
            self._chance.shuffle(self._round)
        if not self._round:
            return []
        subject = self.members[self._round.pop()]
        probe = _Probe(subject=subject.node, number=self._next_number(), asked_at=self._ticks)
        self._probe = probe
        return [Outgoing((subject.host, subject.port), self._ping(probe.number, subject.node))]

    def _ask_helpers(self, probe: _Probe) -> list[Outgoing]:
        helpers = [m for m in self._roll.others() if m.node != probe.subject]
        chosen = self._chance.sample(helpers, min(len(helpers), self._config.helpers))
        return [
            Outgoing(
                (helper.host, helper.port),
                PingRequest(
                    sender=self.me,
                    number=probe.number,
                    subject=probe.subject,
                    news=self._roll.news(),
                ),
            )
            for helper in chosen
        ]

    def _compare(self) -> list[Outgoing]:
        """Compare with a seed while we are alone, else with any member, sometimes a dead one."""
        known = [m for m in self.members.values() if m.node != self.me.node]
        known = [m for m in known if m.state is not State.LEFT]
        addresses = [(m.host, m.port) for m in known]
        if not self._roll.others():
            addresses += self._seeds
        elif self._chance.random() < 0.5 and (gone := [m for m in known if not m.is_there]):
            addresses = [(m.host, m.port) for m in gone]
        return [self._sync_to(self._chance.choice(addresses))] if addresses else []

    # ── answers ──────────────────────────────────────────────────────────────────────────────

    def _help(self, request: PingRequest, address: Address) -> list[Outgoing]:
        subject = self.members.get(request.subject)
        if subject is None or len(self._relays) >= self._config.members_max:
            return []
        number = self._next_number()
        self._relays[number] = _Relay(address, request.number, self._ticks)
        return [Outgoing((subject.host, subject.port), self._ping(number, subject.node))]

    def _on_ack(self, ack: Ack) -> list[Outgoing]:
        if self._probe is not None and ack.number == self._probe.number:
            self._probe = None
        relay = self._relays.pop(ack.number, None)
        if relay is None:
            return []
        return [Outgoing(relay.address, self._ack(relay.number, None))]

    def _drop_relays(self) -> None:
        horizon = self._ticks - self._config.period_ticks
        self._relays = {n: r for n, r in self._relays.items() if r.asked_at > horizon}

    # ── packets ──────────────────────────────────────────────────────────────────────────────

    def _ping(self, number: int, target: NodeId) -> Ping:
        return Ping(sender=self.me, number=number, news=self._news_for(target))

    def _ack(self, number: int, target: NodeId | None) -> Ack:
        return Ack(sender=self.me, number=number, news=self._news_for(target))

    def _news_for(self, target: NodeId | None) -> tuple[Member, ...]:
        """Return news, starting with our view of the target if it is not alive."""
        news = self._roll.news()
        view = self.members.get(target) if target is not None else None
        if view is None or view.state is State.ALIVE or view in news:
            return news
        return (view, *news)

    def _sync_to(self, address: Address, *, is_answer: bool = False) -> Outgoing:
        everyone = tuple(self.members.values())
        packet = Sync(sender=self.me, is_answer=is_answer, news=everyone)
        return Outgoing(address, packet)

    def _some_others(self, count: int) -> list[Member]:
        others = self._roll.others()
        return self._chance.sample(others, min(len(others), count))

    def _next_number(self) -> int:
        self._number += 1
        return self._number
