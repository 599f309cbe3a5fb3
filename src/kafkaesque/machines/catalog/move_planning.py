"""Which partitions should move, and where to: pure functions, called repeatedly.

Each checks where replicas are, or are moving to, and returns a few moves that improve it. In order
of urgency:

    replace    a replica's broker is lost: another takes its place
    drain      a broker is to be emptied: others take its place
    grow       an internal topic has fewer replicas than there are brokers for, up to three
    balance    if wanted: racks apart, replicas even, leaders even, with as few moves as possible

No partition loses a replica without a replacement, and a partition is left alone while too few of
its replicas are live to agree on a move. Repeated planning comes to an end: balancing spreads a
partition over more racks or evens the brokers' loads, and never undoes one for the other. Chance
decides only among equals.
"""

import random
from collections.abc import Collection, Mapping
from itertools import chain
from typing import TypeAlias

from kafkaesque.machines.catalog.catalog_errors import InvalidReplicas
from kafkaesque.machines.catalog.layout import (
    UNEVEN,
    Host,
    Layout,
    PlannedMove,
    Slot,
    live_count,
    spread,
)
from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.types import NodeId

INTERNAL_REPLICATION = 3
"""Replicas of machines' topics, as soon as there are as many brokers."""

_ByTopic: TypeAlias = dict[NodeId, dict[bytes, list[Slot]]]


def plan(
    layout: Layout,
    hosts: Mapping[NodeId, Host],
    chance: random.Random,
    moves_max: int,
    *,
    balances: bool = False,
) -> list[PlannedMove]:
    """Return the next moves; with those under way they are at most `moves_max`.

    `hosts` are all registered brokers; a replica anywhere else counts as lost. Moves that wait for
    an unavailable broker do not count: others need not wait with them.
    """
    under_way = sum(1 for slot in layout.targets if _is_under_way(slot, layout, hosts))
    planner = _Planner(layout, hosts, chance, moves_max - under_way)
    planner.repair()
    planner.grow()
    if balances and not planner.moves and all(h.is_live or h.must_go for h in hosts.values()):
        planner.move_apart()
        planner.even_replicas()
        planner.even_leaders()
    return planner.moves


def set_replication(
    layout: Layout,
    topic_id: bytes,
    replication: int,
    hosts: Mapping[NodeId, Host],
    chance: random.Random,
) -> list[PlannedMove]:
    """Return the moves to this replication for each partition; raises InvalidReplicas."""
    able = sum(1 for host in hosts.values() if host.may_take)
    slots = [slot for slot in layout.replicas if slot[0] == topic_id]
    planner = _Planner(layout, hosts, chance, len(slots))
    for slot in slots:
        nodes = layout.goal(slot)
        if replication < 1 or (replication > len(nodes) and replication > able):
            raise InvalidReplicas(f"cannot place {replication} replicas on {able} brokers")
        planner.resize(slot, replication)
    return planner.moves


class _Planner:
    """A plan in progress: the state as if all its moves so far were done."""

    def __init__(
        self,
        layout: Layout,
        hosts: Mapping[NodeId, Host],
        chance: random.Random,
        budget: int,
    ) -> None:
        self.moves: list[PlannedMove] = []
        self._layout = layout
        self._hosts = hosts
        self._budget = budget
        self._goals = {**layout.replicas, **layout.targets}
        order = sorted(hosts)
        chance.shuffle(order)
        self._able = [node for node in order if hosts[node].may_take]
        self._racks = spread(self._able, hosts)
        self._holds = dict.fromkeys(order, 0)
        self._leads = dict.fromkeys(order, 0)
        self._planned: set[Slot] = set()
        self._is_counted = False

    # ── what must be done ────────────────────────────────────────────────────────────────────

    def repair(self) -> None:
        """Replace replicas on lost brokers first, then those on brokers to be emptied."""
        holding = set(chain.from_iterable(self._goals.values()))
        lost = {n for n in holding if n not in self._hosts or self._hosts[n].is_lost}
        draining = {n for n in holding - lost if self._hosts[n].is_draining}
        for nodes, is_urgent in ((lost, True), (draining, False)):
            if not nodes:
                continue
            for slot, goal in self._goals.items():
                if self._is_spent:
                    return
                # A move that waits for a lost broker is redirected; others are left to finish.
                if not nodes.isdisjoint(goal) and (is_urgent or slot not in self._layout.targets):
                    self._replace(slot, [node for node in goal if node in nodes])

    def grow(self) -> None:
        """Give internal topics as many replicas as they should have."""
        wanted = min(INTERNAL_REPLICATION, len(self._able))
        internal = set(self._layout.internal)
        if not internal:
            return
        for slot, goal in self._goals.items():
            if self._is_spent:
                return
            if slot[0] in internal and len(goal) < wanted and self._is_free(slot):
                self.resize(slot, wanted)

    def resize(self, slot: Slot, replication: int) -> None:
        """Give a partition this many replicas."""
        nodes = self._goals[slot]
        while len(nodes) < replication:
            new = self._best(slot, nodes)
            if new is None:
                break
            nodes = (*nodes, new)
        while len(nodes) > replication:
            worst = self._worst(nodes)
            nodes = tuple(node for node in nodes if node != worst)
        self._plan(slot, nodes)

    def _replace(self, slot: Slot, gone: Collection[NodeId]) -> None:
        if not self._is_movable(slot) or slot in self._planned:
            return
        nodes = self._goals[slot]
        for node in gone:
            staying = tuple(one for one in nodes if one != node)
            new = self._best(slot, staying)
            if new is not None:
                nodes = (*staying, new)
        if nodes[0] != self._goals[slot][0]:
            # Its preferred leader goes: the live broker that leads fewest follows.
            first = min(nodes, key=lambda one: (one not in self._able, self._leads.get(one, 0)))
            nodes = (first, *(one for one in nodes if one != first))
        self._plan(slot, nodes)

    # ── what would be better ─────────────────────────────────────────────────────────────────

    def move_apart(self) -> None:
        """Spread partitions over as many racks as possible."""
        for slot, goal in self._goals.items():
            if self._is_spent:
                return
            reached = spread(goal, self._hosts)
            if reached >= min(len(goal), self._racks) or not self._is_free(slot):
                continue
            self._count_all()
            spare = [n for n in goal if spread(_without(goal, n), self._hosts) == reached]
            old = max(spare, key=lambda node: (node != goal[0], self._holds[node]))
            new = self._best(slot, _without(goal, old), but=(old,))
            if new is not None:
                self._plan(slot, tuple(new if node == old else node for node in goal))

    def even_replicas(self) -> None:
        """Move replicas from the fullest broker to the emptiest, while that evens them out."""
        self._count_all()
        if not self._able or max(self._loads()) - min(self._loads()) < UNEVEN:
            return
        on: _ByTopic = {node: {} for node in self._able}
        for slot, goal in self._goals.items():
            for node in goal:
                if node in on:
                    on[node].setdefault(slot[0], []).append(slot)
        while not self._is_spent:
            found = self._best_gift(on)
            if found is None:
                return
            slot, old, new = found
            on[old][slot[0]].remove(slot)
            on[new].setdefault(slot[0], []).append(slot)
            self._plan(slot, tuple(new if one == old else one for one in self._goals[slot]))

    def _best_gift(self, on: _ByTopic) -> tuple[Slot, NodeId, NodeId] | None:
        by_load = sorted(self._able, key=lambda node: self._holds[node])
        for old in reversed(by_load):
            for new in by_load:
                if self._holds[old] - self._holds[new] < UNEVEN:
                    break
                slot = self._gift(on, old, new)
                if slot is not None:
                    return slot, old, new
        return None

    def _gift(self, on: _ByTopic, old: NodeId, new: NodeId) -> Slot | None:
        """Return what `old` should give to `new`: from the topic with the largest surplus."""
        should_lead = self._leads[old] > self._leads[new]

        def surplus(topic_id: bytes) -> int:
            return len(on[old][topic_id]) - len(on[new].get(topic_id, ()))

        for topic_id in sorted(on[old], key=surplus, reverse=True):
            fits: Slot | None = None
            for slot in on[old][topic_id]:
                goal = self._goals[slot]
                if new in goal or not self._is_free(slot) or not self._keeps_apart(goal, old, new):
                    continue
                fits = slot
                if (goal[0] == old) == should_lead:
                    break
            if fits is not None:
                return fits
        return None

    def _keeps_apart(self, goal: Replicas, old: NodeId, new: NodeId) -> bool:
        moved = (new if one == old else one for one in goal)
        return spread(moved, self._hosts) >= spread(goal, self._hosts)

    def even_leaders(self) -> None:
        """Make others first where a broker is first too often; no records move for it."""
        self._count_all()
        for slot, goal in self._goals.items():
            if self._is_spent:
                return
            able = [node for node in goal if node in self._able]
            if not able or goal[0] not in self._able or not self._is_free(slot):
                continue
            first = min(able, key=lambda node: self._leads[node])
            if self._leads[goal[0]] - self._leads[first] >= UNEVEN:
                self._plan(slot, (first, *_without(goal, first)))

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    @property
    def _is_spent(self) -> bool:
        return len(self.moves) >= self._budget

    def _is_movable(self, slot: Slot) -> bool:
        """Whether its replicas can agree on a move now: a majority of them is live."""
        nodes = self._layout.replicas[slot]
        return live_count(nodes, self._hosts) > len(nodes) // 2

    def _is_free(self, slot: Slot) -> bool:
        is_idle = slot not in self._planned and slot not in self._layout.targets
        return is_idle and self._is_movable(slot)

    def _best(
        self, slot: Slot, staying: Collection[NodeId], but: Collection[NodeId] = ()
    ) -> NodeId | None:
        """Return the best broker to add: from another rack, then the one that holds least."""
        self._count_all()
        free = [node for node in self._able if node not in staying and node not in but]
        if not free:
            return None
        held = self._layout.replicas[slot]
        reached = {self._hosts[n].rack for n in staying if n in self._hosts} - {""}
        return min(
            free,
            key=lambda node: (
                self._hosts[node].rack in reached,
                node not in held,  # it already has the records
                self._holds[node],
            ),
        )

    def _worst(self, nodes: Replicas) -> NodeId:
        """Return the replica to drop: an unavailable one, one sharing a rack; the first last."""
        self._count_all()
        return max(
            nodes,
            key=lambda node: (
                node not in self._able,
                spread(_without(nodes, node), self._hosts),
                node != nodes[0],
                self._holds.get(node, 0),
            ),
        )

    def _plan(self, slot: Slot, nodes: Replicas) -> None:
        before = self._goals[slot]
        if nodes == before:
            return
        self._count_all()
        assert len(set(nodes)) == len(nodes), "a broker holds a partition once"
        self._count(before, -1)
        self._count(nodes, 1)
        self._goals[slot] = nodes
        self._planned.add(slot)
        self.moves.append(PlannedMove(*slot, nodes))

    def _loads(self) -> list[int]:
        return [self._holds[node] for node in self._able]

    def _count_all(self) -> None:
        """Count replicas and leaders per broker; done late, as most runs find nothing to do."""
        if not self._is_counted:
            self._is_counted = True
            for nodes in self._goals.values():
                self._count(nodes, 1)

    def _count(self, nodes: Replicas, by: int) -> None:
        if nodes[0] in self._leads:
            self._leads[nodes[0]] += by
        for node in nodes:
            if node in self._holds:
                self._holds[node] += by


def _without(nodes: Replicas, node: NodeId) -> Replicas:
    return tuple(one for one in nodes if one != node)


def _is_under_way(slot: Slot, layout: Layout, hosts: Mapping[NodeId, Host]) -> bool:
    """Whether a move can finish as things are."""
    nodes, target = layout.replicas[slot], layout.targets[slot]
    return live_count(target, hosts) == len(target) and live_count(nodes, hosts) > len(nodes) // 2
