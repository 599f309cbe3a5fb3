"""Three nodes reduced to their rosters and replicas, connected by a list instead of a network."""

import random
from collections.abc import Sequence

from kafkaesque.config import RaftConfig
from kafkaesque.entry import HardState, Voters
from kafkaesque.raft.messages import CoreMessage
from kafkaesque.raft.raft import Raft, Role
from kafkaesque.raft.roster import Beat, Roster
from tests.raft.memory_log import MemoryLog, log_start

CONFIG = RaftConfig()
NODES = (1, 2, 3)


class Node:
    """A node reduced to its roster and replicas, on logs in memory."""

    def __init__(self, node: int, session: int, groups: Sequence[str]) -> None:
        self.roster = Roster(node, CONFIG, session)
        self.replicas: dict[str, Raft] = {}
        self.logs: dict[str, MemoryLog] = {}
        for group in groups:
            log = self.logs[group] = MemoryLog(log_start(Voters(voters=NODES)))
            state = HardState(term=0, vote=None)
            raft = Raft(node, CONFIG, log, state, random.Random(f"{node}{group}"))
            raft.stable_at(0)
            self.replicas[group] = raft
            self.roster.add(group, raft)


class Cluster:
    """Three such nodes; `cuts` are pairs that cannot exchange messages."""

    def __init__(self, groups: Sequence[str]) -> None:
        self.nodes = {node: Node(node, node, groups) for node in NODES}
        self.cuts: set[tuple[int, int]] = set()
        self.sent: list[CoreMessage | Beat] = []
        self._mail: list[tuple[str, CoreMessage | Beat]] = []

    def run(self, ticks: int, *, may_rest: bool = True) -> None:
        """Let time pass; everything sent in a tick arrives in it."""
        for _ in range(ticks):
            for node in self.nodes.values():
                if may_rest:
                    self._mail += [("", beat) for beat in node.roster.tick()]
                for group in list(node.roster.awake):
                    node.replicas[group].tick()
                    self._carry_out(node, group)
            while self._mail:
                mail, self._mail = self._mail, []
                for group, message in mail:
                    self._deliver(group, message)

    def leader(self, group: str) -> int:
        """Return the leader of a group."""
        leads = [n for n, node in self.nodes.items() if node.replicas[group].role is Role.LEADER]
        return max(leads, key=lambda n: self.nodes[n].replicas[group].term)

    def propose(self, group: str) -> None:
        """Give the leader a batch of one record."""
        node = self.nodes[self.leader(group)]
        node.replicas[group].propose(b"batch", 1)
        self._carry_out(node, group)

    def isolate(self, node: int) -> None:
        """Cut a node off from all others."""
        self.cuts |= {(node, other) for other in NODES} | {(other, node) for other in NODES}

    def is_all_at_rest(self) -> bool:
        """Whether no replica anywhere has ticks."""
        return all(not node.roster.awake for node in self.nodes.values())

    def _deliver(self, group: str, message: CoreMessage | Beat) -> None:
        if (message.source, message.target) in self.cuts:
            return
        self.sent.append(message)
        node = self.nodes[message.target]
        if isinstance(message, Beat):
            node.roster.receive(message)
            return
        node.replicas[group].step(message)
        self._carry_out(node, group)

    def _carry_out(self, node: Node, group: str) -> None:
        raft = node.replicas[group]
        ready = raft.ready()
        self._mail += [(group, message) for message in ready.messages]
        if ready.truncate is not None:
            node.logs[group].truncate(ready.truncate)
        if ready.append:
            node.logs[group].append(ready.append)
            raft.stable_at(raft.end)
            self._carry_out(node, group)
