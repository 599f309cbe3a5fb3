"""Many members and a network between them that delays, loses and can be cut."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable

from kafkaesque.gossip.config import GossipConfig
from kafkaesque.gossip.gossip import Gossip, Outgoing
from kafkaesque.gossip.messages import Member, State, Sync
from kafkaesque.types import NodeId

CONFIG = GossipConfig()


def a_member(node: NodeId, **fields: object) -> Member:
    return Member(node=node, host=f"host{node}", port=9092, **fields)  # type: ignore[arg-type]


class Crowd:
    """Members 1 to `count`; all join through the first."""

    def __init__(self, count: int, seed: int = 0, loss: float = 0.0, late: float = 0.1) -> None:
        self.chance = random.Random(seed)
        self.loss = loss
        self.late = late
        self.now = 0
        self.sent = 0
        self.largest = 0
        self.verdicts: list[tuple[int, NodeId, Member]] = []
        """When which member declared which one dead."""
        self.halves: tuple[set[NodeId], set[NodeId]] | None = None
        self.gossips: dict[NodeId, Gossip] = {}
        self._due: defaultdict[int, list[tuple[NodeId, NodeId, Outgoing]]] = defaultdict(list)
        for node in range(1, count + 1):
            self.start(node)

    def start(self, node: NodeId, **fields: object) -> None:
        chance = random.Random(self.chance.random())
        self.gossips[node] = Gossip(a_member(node, **fields), [("host1", 9092)], CONFIG, chance)

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.now += 1
            for node, gossip in list(self.gossips.items()):
                self.send(node, gossip.tick())
            for source, target, outgoing in self._due.pop(self.now, []):
                if target in self.gossips and not self._is_cut(source, target):
                    self.send(target, self.gossips[target].receive(outgoing.packet))
            for node, gossip in self.gossips.items():
                for member in gossip.take_changes():
                    if member.state is State.DEAD:
                        self.verdicts.append((self.now, node, member))

    def run_until(self, is_so: Callable[[], bool], ticks_max: int) -> int:
        """Run until a condition holds; return about how many ticks it took."""
        for ticks in range(0, ticks_max, CONFIG.period_ticks):
            if is_so():
                return ticks
            self.run(CONFIG.period_ticks)
        raise AssertionError(f"not so within {ticks_max} ticks")

    def send(self, source: NodeId, packets: Iterable[Outgoing]) -> None:
        for outgoing in packets:
            self.sent += 1
            if not isinstance(outgoing.packet, Sync):
                self.largest = max(self.largest, len(outgoing.packet.news))
            target = int(outgoing.address[0].removeprefix("host"))
            if self.chance.random() >= self.loss:
                delay = 2 if self.chance.random() < self.late else 1
                self._due[self.now + delay].append((source, target, outgoing))

    def all_see(self, nodes: Iterable[NodeId], state: State = State.ALIVE) -> bool:
        """Return whether all running members see these in this state."""
        wanted = list(nodes)
        return all(
            node in gossip.members and gossip.members[node].state is state
            for gossip in self.gossips.values()
            for node in wanted
        )

    def all_know(self, nodes: Iterable[NodeId]) -> bool:
        """Return whether all running members know all of these, and none of them as dead."""
        wanted = list(nodes)
        return all(
            node in gossip.members and gossip.members[node].is_there
            for gossip in self.gossips.values()
            for node in wanted
        )

    def _is_cut(self, source: NodeId, target: NodeId) -> bool:
        return self.halves is not None and not any({source, target} <= h for h in self.halves)
