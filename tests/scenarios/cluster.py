"""Replicas, a network and disks that move only when a scenario says so.

Real `Raft` cores on lists in memory. Whatever the script does, the two most important promises are
checked after every step: one leader per term, and a committed entry never changes and is in the log
of every later leader.
"""

import random
from collections.abc import Callable

from kafkaesque.config import RaftConfig
from kafkaesque.entry import Entry, HardState
from kafkaesque.raft.messages import CoreMessage
from kafkaesque.raft.raft import Raft, Role
from kafkaesque.types import NO_TERM, Index, NodeId, Term
from tests.raft.memory_log import MemoryLog
from tests.scenarios import words


class FixedChance(random.Random):
    """Makes node n campaign after `election_ticks + n - 1` ticks, every time."""

    def __init__(self, node: NodeId) -> None:
        super().__init__(node)
        self._node = node

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return (self._node - 1) % start


class Node:
    """One replica with its disk; `saved` is the hard state that a power loss would leave."""

    def __init__(self, node: NodeId, config: RaftConfig, log: MemoryLog) -> None:
        self.node = node
        self.config = config
        self.log = log
        self.saved = HardState(term=NO_TERM, vote=None)
        self.is_recovering = False
        self.is_up = False
        self.unsaved: HardState | None = None
        self.held: list[CoreMessage] = []
        self.role = Role.FOLLOWER
        self.raft = self._new_raft()

    def start(self) -> None:
        """Start from what the disk holds."""
        self.is_up = True
        self.role = Role.FOLLOWER
        self.raft = self._new_raft()
        self.raft.stable_at(self.log.stable)

    def stop(self, keep: Index = 0) -> None:
        """Lose power, and with it everything that was not durable."""
        self.is_up = False
        self.log = self.log.after_power_loss(keep)
        self.unsaved = None
        self.held = []

    def _new_raft(self) -> Raft:
        chance = FixedChance(self.node)
        return Raft(
            self.node,
            self.config,
            self.log,
            self.saved,
            chance,
            is_recovering=self.is_recovering,
        )


class Cluster:
    """All nodes of a scenario; `trace` takes one line for everything that happens."""

    def __init__(self, trace: Callable[[str], None]) -> None:
        self.nodes: dict[NodeId, Node] = {}
        self.pending: list[CoreMessage] = []
        self.delayed: list[CoreMessage] = []
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        self.is_auto = False
        self._trace = trace
        self._leaders: dict[Term, NodeId] = {}
        self._committed: dict[Index, Entry] = {}
        self._compacted: set[Index] = set()

    def add(self, node: NodeId, config: RaftConfig, log: MemoryLog) -> Node:
        """Add a node and start it."""
        new = self.nodes[node] = Node(node, config, log)
        new.start()
        return new

    def carry_out(self, node: Node) -> None:
        """Carry out the core's `Ready`, in order, and trace it."""
        ready = node.raft.ready()
        is_elected = node.raft.role is Role.LEADER and node.role is not Role.LEADER
        if node.raft.role is not node.role:
            node.role = node.raft.role
            name = node.role.name.lower().replace("_", "-")
            self._trace(f"  {node.node} becomes {name} in term {node.raft.term}")
        for line in words.ready(ready):
            self._trace(f"  {node.node} {line}")
        if ready.hard_state is not None:
            node.unsaved = ready.hard_state
        if ready.install is not None:
            node.log.install(ready.install)
        if ready.truncate is not None:
            node.log.truncate(ready.truncate)
        node.log.append(ready.append)
        if ready.has_lost:
            node.is_recovering = True
        if ready.is_recovered:
            node.is_recovering = False
        node.held += ready.messages
        if is_elected:
            self._watch_elected(node)
        self._watch_committed(node)
        if self.is_auto:
            self.sync(node, node.log.end)
        elif node.unsaved is None:
            self._release(node)

    def sync(self, node: Node, index: Index) -> None:
        """Let the disk report: the hard state is durable, and the log up to `index`."""
        if node.unsaved is not None:
            node.saved, node.unsaved = node.unsaved, None
        self._release(node)
        if node.log.sync(index):
            self._trace(f"  {node.node} is stable up to {node.log.stable}")
            node.raft.stable_at(node.log.stable)
            self.carry_out(node)

    def deliver(self, message: CoreMessage) -> None:
        """Let a message arrive, unless its link is cut or its target is down."""
        target = self.nodes.get(message.target)
        is_cut = (message.source, message.target) in self.cuts
        if is_cut or target is None or not target.is_up:
            self._trace(f"{words.message(message)} (lost)")
            return
        self._trace(words.message(message))
        target.raft.step(message)
        self.carry_out(target)

    def compacted(self, node: Node, first: Index, end: Index) -> None:
        """Compact one node's log; later leaders may lack the same batches."""
        assert end <= node.raft.commit, "only committed entries are compacted"
        node.log.compact(first, end)
        self._compacted |= set(range(first, end))

    def _release(self, node: Node) -> None:
        self.pending += node.held
        node.held = []

    def _watch_committed(self, node: Node) -> None:
        for entry in node.log.held:
            if entry.end <= node.raft.commit:
                known = self._committed.setdefault(entry.first, entry)
                assert known == entry, f"two entries committed at {entry.first}"

    def _watch_elected(self, node: Node) -> None:
        leader = self._leaders.setdefault(node.raft.term, node.node)
        assert leader == node.node, f"two leaders in term {node.raft.term}"
        for first, entry in self._committed.items():
            is_gone = first < node.log.start.index or first in self._compacted
            assert is_gone or entry in node.log.held, f"leader {node.node} lacks {first}"
