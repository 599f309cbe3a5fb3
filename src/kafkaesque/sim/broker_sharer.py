"""A member of a share group on a simulated cluster: it takes records, and settles them, or not.

It asks any broker for a partition's leader and sometimes believes in an old one. It is slow, dies,
loses answers, acknowledges twice, late, or at the wrong broker. `sim/share_checks.py` checks what
it is given.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.queues.partition_shares import PartitionShares
from kafkaesque.broker.queues.share_sessions import OPENING, ShareSession
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.share_checks import ShareOracle
from kafkaesque.types import NodeId, Offset

QUEUE = "queue"
PARTITIONS = 2
_PAUSE = 40
_STEADY_PAUSE = 5
"""Short: what is on its last attempt is delivered alone, and there may be hundreds."""
_WAY_MS = 20
_BYTES_MAX = 1 << 16
_FEW = 8
_MANY = 500
_KINDS = (Ack.ACCEPT, Ack.REJECT, Ack.RELEASE, Ack.RENEW)
_WEIGHTS = (7, 2, 3, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one take gave it."""

    index: int
    node: NodeId
    offsets: Sequence[Offset]


class Sharer:
    """One member."""

    def __init__(
        self, world: BrokerWorld, chance: random.Random, name: str, group: str, oracle: ShareOracle
    ) -> None:
        self.is_paused = False
        self.is_steady = False
        """Whether it accepts everything at once, as in the quiet phase."""
        self._world = world
        self._chance = chance
        self._name = name
        self._group = group
        self._oracle = oracle
        self._births = 0
        self._held: list[Held] = []
        self._leaders: dict[int, NodeId] = {}
        self._sessions: dict[NodeId, tuple[int, ShareSession]] = {}
        """By broker, with the life of its process."""

    @property
    def member_id(self) -> str:
        """The id of its current life."""
        return f"{self._name}.{self._births}"

    def go_on(self) -> None:
        """Do the next thing, and schedule the one after."""
        pause = 1 + self._chance.randrange(_STEADY_PAUSE if self.is_steady else _PAUSE)
        fate = 1.0 if self.is_steady else self._chance.random()
        if self.is_paused:
            pass
        elif fate < 0.01:
            self._die()
        elif fate < 0.03:
            self._leave()
        elif fate < 0.05:
            pause += self._chance.randrange(2 * self._oracle.limits.lock_ms)
        elif self._held and (fate < 0.5 or self.is_steady):
            self._settle(self._held.pop(self._chance.randrange(len(self._held))))
        else:
            self._take(self._chance.randrange(PARTITIONS))
        self._world.schedule(pause, self.go_on)

    # ── its life ─────────────────────────────────────────────────────────────────────────────

    def _die(self) -> None:
        """Die; some brokers notice at once, some later, and some never."""
        for node, (life, session) in self._sessions.items():
            if self._chance.random() < 0.7:
                lost = partial(self._end, session, is_lost=True)
                self._at(node, lost, life=life, delay=self._chance.choice([1, 1, 300]))
        self._world.count("sharers died")
        self._be_born()

    def _leave(self) -> None:
        """Close all sessions, maybe with some acknowledgements before."""
        if self._held and self._chance.random() < 0.5:
            self._settle(self._held.pop())
        for node, (life, session) in self._sessions.items():
            self._at(node, partial(self._end, session, is_lost=False), life=life)
        self._world.count("sharers left")
        self._be_born()

    def _be_born(self) -> None:
        self._births += 1
        self._held.clear()
        self._sessions.clear()

    def _end(self, session: ShareSession, broker: Broker, *, is_lost: bool) -> None:
        sessions = broker.shares.sessions
        if is_lost:
            sessions.lost(session.connection)
        else:
            sessions.end(session)
        for shares in broker.shares.partitions:
            if shares.place in session.held:
                self._oracle.released(shares, session.group, session.member)

    def _session(self, machine: BrokerNode, broker: Broker) -> ShareSession:
        life, session = self._sessions.get(machine.node, (0, None))
        if session is None or life != machine.life:
            key, connection = (self._group, self.member_id), self._world.next_serial()
            session = broker.shares.sessions.at(key, OPENING, connection)
            self._sessions[machine.node] = machine.life, session
        return session

    # ── taking ───────────────────────────────────────────────────────────────────────────────

    def _take(self, index: int) -> None:
        member_id = self.member_id
        records_max = self._chance.choice([1, _FEW, _FEW, _MANY])
        if self.is_steady:
            records_max = _MANY
        node = self._leader(index)
        if node is None:
            return

        def ask(broker: Broker) -> None:
            if member_id != self.member_id:
                return  # it has died meanwhile
            shares = self._shares(broker, index)
            session = self._session(self._world.nodes[node], broker)
            now_ms = self._world.clock.monotonic_ms()
            taken = shares.take(self._group, member_id, records_max, _BYTES_MAX)
            if not taken.acquired:
                return
            session.served(shares.place)
            self._world.groups[shares.partition.replica.group].was_read(taken.data)
            offsets = self._oracle.took(shares, self._group, member_id, taken, now_ms)
            if not self.is_steady and self._chance.random() < 0.05:
                self._world.count("shared records lost on the way")
            else:
                self._held.append(Held(index=index, node=node, offsets=offsets))

        self._at(node, ask)

    def _leader(self, index: int) -> NodeId | None:
        """Return the leader as it believes: sometimes one of the past, sometimes a wrong one."""
        fate = 1.0 if self.is_steady else self._chance.random()
        if fate < 0.05:
            return self._chance.choice(list(self._world.nodes))
        if fate < 0.3 and index in self._leaders:
            return self._leaders[index]
        able = self._world.able()
        broker = self._chance.choice(able).broker if able else None
        topic = None if broker is None else broker.catalog.topics.get(QUEUE)
        node = None
        if broker is not None and topic is not None:
            node = broker.partition_leader(topic, index).node
        if node is not None:
            self._leaders[index] = node
        return node

    def _shares(self, broker: Broker, index: int) -> PartitionShares:
        self._oracle.watch(broker, self._world.nodes[broker.node].life)
        topic = broker.topics.topic(QUEUE)
        return broker.shares.of((topic.topic_id, index), broker.partition(QUEUE, index))

    # ── settling ─────────────────────────────────────────────────────────────────────────────

    def _settle(self, held: Held) -> None:
        if self.is_steady:
            self._send(held, batches(held.offsets, [Ack.ACCEPT]), 1)
            return
        offsets = held.offsets
        if self._chance.random() < 0.4:
            begin = self._chance.randrange(len(offsets))
            offsets = offsets[begin : begin + 1 + self._chance.randrange(_FEW)]
            rest = [offset for offset in held.offsets if offset not in offsets]
            if rest:
                self._held.append(Held(index=held.index, node=held.node, offsets=rest))
        count = 1 if self._chance.random() < 0.5 else len(offsets)
        acks = batches(offsets, self._chance.choices(_KINDS, _WEIGHTS, k=count))
        delay = 1 + self._chance.randrange(_WAY_MS)
        if self._chance.random() < 0.1:
            delay += self._chance.randrange(2 * self._oracle.limits.lock_ms)
        self._send(held, acks, delay)
        if self._chance.random() < 0.15:
            self._send(held, acks, delay + self._chance.randrange(_WAY_MS))
        elif any(Ack.RENEW in batch.kinds for batch in acks):
            self._held.append(Held(index=held.index, node=held.node, offsets=offsets))

    def _send(self, held: Held, acks: Sequence[AckBatch], delay: int) -> None:
        member_id, node = self.member_id, held.node
        if not self.is_steady and self._chance.random() < 0.1:
            node = self._leader(held.index) or node

        def ask(broker: Broker) -> None:
            shares = self._shares(broker, held.index)
            now_ms = self._world.clock.monotonic_ms()
            self._oracle.settle(shares, self._group, member_id, acks, now_ms)

        self._at(node, ask, delay=delay)

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def _at(
        self,
        node: NodeId,
        ask: Callable[[Broker], None],
        *,
        delay: int | None = None,
        life: int | None = None,
    ) -> None:
        """Send a request to a broker; with a life, only if that still runs when it arrives."""
        machine = self._world.nodes[node]

        def arrive() -> None:
            if machine not in self._world.able() or life not in (None, machine.life):
                return
            try:
                self._world.ask_broker(machine, ask)
            except KafkaesqueError as error:
                self._world.count(f"sharers refused: {type(error).__name__}")

        way = 1 + self._chance.randrange(_STEADY_PAUSE if self.is_steady else _WAY_MS)
        self._world.schedule(way if delay is None else delay, arrive)


def batches(offsets: Sequence[Offset], kinds: Sequence[Ack]) -> list[AckBatch]:
    """Return ascending offsets as ranges without holes, with one kind for all, or one for each."""
    edges = [at + 1 for at, (one, other) in enumerate(pairwise(offsets)) if one + 1 != other]
    return [
        AckBatch(offsets[begin], offsets[end - 1], kinds[begin:end] if len(kinds) > 1 else kinds)
        for begin, end in pairwise([0, *edges, len(offsets)])
    ]
