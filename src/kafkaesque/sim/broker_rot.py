"""Disks that lose old data: closed segments of user topics, at most one copy of each.

A client, a peer or nothing may find the damage; at the end everything is read, and must be mended.
"""

from dataclasses import dataclass
from functools import partial

from kafkaesque.broker.replication.repair_ranges import is_whole
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.verified_reads import cut_at, read_sound
from kafkaesque.errors import KafkaesqueError
from kafkaesque.log.segment import Segment
from kafkaesque.record.view import first_damage, split_batches
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import GroupId, NodeId, Offset

_READ_BYTES = 1 << 16
_FLIPS_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rot:
    """Offsets of one copy that were damaged."""

    group: GroupId
    node: NodeId
    first: Offset
    end: Offset


class Rotting:
    """Damages the disks of a world."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._chance = world.chance
        self._rot: list[Rot] = []

    def happen(self) -> None:
        """Damage a closed segment somewhere, if others have everything in it."""
        self._forget_mended()
        places = [
            (machine, replica, segment, end)
            for machine in self._world.able()
            if machine.broker is not None
            for replica in machine.broker.replicas.by_group.values()
            for segment, end in closed_segments(replica)
            if self._may_rot(machine.node, replica, segment.base, end)
        ]
        if not places:
            return
        machine, replica, segment, end = self._chance.choice(places)
        self.damage(machine, replica, segment, end)

    def damage(self, machine: BrokerNode, replica: Replica, segment: Segment, end: Offset) -> None:
        """Damage one closed segment in some way."""
        world, group = self._world, replica.group
        self.note(replica, segment, end)
        # Recovery treats a log without its first segment as lost, and has it refilled.
        if self._chance.random() < 0.3 and not replica.log.segments.is_first(segment):
            machine.kill()
            world.count("segments deleted")
            for suffix in (".log", ".index", ".timeindex"):
                if f"{segment.base:020d}{suffix}" in machine.disk.list(group):
                    machine.disk.remove(segment.stem + suffix)
            return
        for _ in range(1 + self._chance.randrange(_FLIPS_MAX)):
            position = self._chance.randrange(segment.size)
            machine.disk.flip_bit(segment.path, position, self._chance.randrange(8))

    def note(self, replica: Replica, segment: Segment, end: Offset) -> None:
        """Record that a segment is damaged."""
        node, group = replica.raft.node, replica.group
        self._rot.append(Rot(group=group, node=node, first=segment.base, end=end))
        self._world.rotten[group].add(node)
        self._world.count("segments damaged")

    def _may_rot(self, node: NodeId, replica: Replica, first: Offset, end: Offset) -> bool:
        """Return whether at least two other voters have all of it, undamaged."""
        others = [
            (machine.node, other)
            for machine in self._world.able()
            if machine.broker is not None and machine.node != node
            if (other := machine.broker.replicas.by_group.get(replica.group)) is not None
        ]
        whole = [
            other
            for at, other in others
            if other.error is None
            and not other.raft.is_recovering
            and at in replica.raft.voters.voters
            and other.settled_offset >= end
            and is_whole(other, first, end)
        ]
        overlaps = any(
            rot.group == replica.group and rot.first < end and first < rot.end for rot in self._rot
        )
        return len(whole) >= 2 and not overlaps

    def _forget_mended(self) -> None:
        rot, self._rot = self._rot, []
        for one in rot:
            replica = self._replica(one)
            if replica is None or not is_sound(replica, one.first, one.end):
                self._rot.append(one)
            else:
                self._world.count("segments mended while it ran")

    def _replica(self, rot: Rot) -> Replica | None:
        broker = self._world.nodes[rot.node].broker
        return None if broker is None else broker.replicas.by_group.get(rot.group)

    # ── at the end ───────────────────────────────────────────────────────────────────────────

    def look_through(self) -> bool:
        """Let every broker read the damaged data; return whether all of it is good again."""
        world = self._world
        rot, self._rot = self._rot, []
        for one in rot:
            machine = world.nodes[one.node]
            replica = self._replica(one)
            if machine.broker is None or not machine.is_ready:
                self._rot.append(one)
            elif replica is not None:  # otherwise the topic is gone
                world.act(machine, partial(read_all, replica))
                is_read = replica.settled_offset >= one.end  # else it does not know its commit yet
                if replica.damage.found or replica.error is not None or not is_read:
                    self._rot.append(one)
        if self._rot:
            return False
        for nodes in world.rotten.values():
            nodes.clear()  # from now on no damage is excused
        return True


def closed_segments(replica: Replica) -> list[tuple[Segment, Offset]]:
    """Return the closed segments that are committed and synced, each with its end."""
    segments = replica.log.segments
    if replica.error is not None or replica.has_holes or replica.log.has_own_start:
        return []
    below = min(replica.settled_offset, replica.log.mendable_below)
    bases = [base for base in segments.bases if base >= replica.log.start.offset]
    found = [segments.span(base) for base in bases]
    return [(segment, end) for segment, end in found if segment.is_closed and end <= below]


def read_all(replica: Replica) -> None:
    """Read a log up to its settled offset; the read itself records damage."""
    offset, end = replica.log.start.offset, replica.settled_offset
    while offset < end:  # terminates: each turn advances
        try:
            data = read_sound(replica, offset, _READ_BYTES, first_always=True, end=end)
        except KafkaesqueError:
            offset = replica.log.segments.span(offset)[1]
            continue
        if not data:
            return
        offset = [view.end_offset for view in split_batches(data)][-1]


def is_sound(replica: Replica, first: Offset, end: Offset) -> bool:
    """Return whether the log's part of [first, end) is what was written; records nothing."""
    log = replica.log
    offset = max(first, log.start.offset)
    try:
        while offset < end:  # terminates: each turn advances
            data = cut_at(log.segments.read(offset, _READ_BYTES), end)
            if not data or first_damage(data, offset, lambda at: log.term_at(log.index_at(at))):
                return False
            offset = [view.end_offset for view in split_batches(data)][-1]
    except KafkaesqueError:
        return False
    return True
