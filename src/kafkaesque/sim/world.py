"""The simulated world: one clock, one schedule, and everything that happens in it.

A run is a function of its seed: every choice is drawn from one random source, and events at the
same time run in the order in which they were scheduled. A *step* is one event: a message delivered,
a tick of a node, or a sync done.
"""

import random
from collections.abc import Callable
from functools import partial

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.entry import Voters
from kafkaesque.errors import DiskFull, RaftError
from kafkaesque.raft.messages import Message
from kafkaesque.raft.raft import Role
from kafkaesque.raft.roster import Beat
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.checks import GroupChecks, Violation, Watch
from kafkaesque.sim.disk import PowerLost, SimDisk
from kafkaesque.sim.narrow import NarrowWays
from kafkaesque.sim.network import Network
from kafkaesque.sim.node import SimNode
from kafkaesque.sim.schedule import Schedule
from kafkaesque.sim.settings import NetworkFaults, Settings, draw
from kafkaesque.topic_settings import FlushPolicy
from kafkaesque.types import GroupId, NodeId


class World(Schedule):
    """A cluster with its clients, from one seed."""

    def __init__(self, seed: int, settings: Settings | None = None) -> None:
        super().__init__()
        self.seed = seed
        self.chance = random.Random(seed)
        self.settings = settings if settings is not None else draw(self.chance)
        self.nodes: dict[NodeId, SimNode] = {}
        self.checks: dict[GroupId, GroupChecks] = {}
        self.ways: NarrowWays | None = self._narrow_ways()
        self.network: Network[Message | Beat] = Network(
            self.settings.network, self.chance, self.schedule, self._deliver, self.ways
        )
        self._first_voters = Voters(voters=tuple(range(1, self.settings.nodes + 1)))
        self._written = 0
        self._is_quiet = False
        self._last_node = self.settings.nodes
        self._watches: dict[tuple[NodeId, GroupId], Watch] = {}
        self.damaged: set[NodeId] = set()
        """Nodes whose disks had bits flipped."""
        self._begin()

    @property
    def is_forgetful(self) -> bool:
        """Whether there are several voters, and each may lose acknowledged data in a power loss."""
        return self.settings.nodes > 1 and self.settings.flush is not FlushPolicy.ALWAYS

    # ── nodes ────────────────────────────────────────────────────────────────────────────────

    def add_node(self, node: NodeId) -> SimNode:
        """Add a new, empty machine and start it."""
        schedule = partial(self._schedule_sync, node)
        disk = SimDisk(self.chance, schedule, self.settings.disk, clock=self.clock)
        machine = SimNode(
            node,
            self.settings,
            disk,
            self.clock,
            self.chance,
            self.network.send,
            self._opened,
            self._first_voters,
        )
        self.nodes[node] = machine
        self.start(machine)
        drift = self.settings.drift * (2 * self.chance.random() - 1)
        period = max(1, round(self.settings.tick_ms * (1 + drift)))
        self.schedule(self.chance.randrange(period), partial(self._tick, machine, period))
        return machine

    def leader(self, group: GroupId) -> Replica | None:
        """Return the replica that leads in the newest term, if any."""
        leading = [
            replica
            for machine in self.nodes.values()
            if (replica := machine.replicas.get(group)) is not None
            and replica.raft.role is Role.LEADER
        ]
        return max(leading, key=lambda replica: replica.raft.term, default=None)

    def next_node(self) -> NodeId:
        """Return an id that no node has ever had."""
        self._last_node += 1
        return self._last_node

    def heal(self) -> None:
        """End all faults: start every node, heal the network, repair the disks."""
        self.network.heal()
        self.network.faults = NetworkFaults(delay_max=self.settings.network.delay_max)
        for machine in self.nodes.values():
            machine.disk.mend(self.settings.disk)
            if not machine.is_up:
                self.start(machine)

    # ── clients ──────────────────────────────────────────────────────────────────────────────

    def write(self, machine: SimNode, group: GroupId, padding: bytes = b"") -> None:
        """Send a batch of one to three records to a node, as a client would."""
        replica = machine.replicas[group]
        checks = self.checks[group]
        self._written += 1
        key = f"k{self.chance.randrange(8)}".encode()
        records = [
            Record(
                offset=place,
                timestamp_ms=self.clock.now_ms(),
                key=key,
                value=f"{self._written}.{place}".encode() + padding,
            )
            for place in range(1 + self.chance.randrange(3))
        ]
        next_offset = replica.log.end_offset

        def done(outcome: Outcome) -> None:
            if outcome is Outcome.UNKNOWN:
                self.count("unknown")
            else:
                checks.acknowledge(next_offset, [record.value for record in records])
                self._watches[machine.node, group].after_step()

        def propose() -> None:
            offset = replica.propose(build_batch(records), done)
            if offset != next_offset:
                raise Violation(f"a batch was given offset {offset} where {next_offset} was next")
            machine.after_event()

        try:
            self.act(machine, propose)
        except (RaftError, DiskFull):
            self.count("refused")

    def stop_clients(self) -> None:
        """Stop all writes."""
        self._is_quiet = True

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def act(self, machine: SimNode, action: Callable[[], None]) -> None:
        """Run an action on a node, in which the power may fail. Then check the node."""
        try:
            action()
            for group in machine.replicas:
                self._watches[machine.node, group].after_step()
        except PowerLost:
            self.count("power lost while writing")
            machine.lose_power()

    def start(self, machine: SimNode) -> None:
        """Start a node that is down; if its disk is full this fails and is retried later."""
        try:
            self.act(machine, machine.start)
        except DiskFull:
            self.count("start failed on a full disk")
            machine.give_up()
        if machine.is_up and machine.node in self._first_voters.voters:
            for group in self.checks:
                if group not in machine.replicas:  # power was lost before it was created
                    self.act(machine, partial(machine.create, group, self._first_voters))
        may_refill = self.is_forgetful or machine.node in self.damaged
        if machine.is_refilling and not may_refill:
            raise Violation(f"node {machine.node} treated good data as damaged")

    def _begin(self) -> None:
        groups = [f"group-{number}" for number in range(self.settings.groups)]
        self.checks = {group: GroupChecks(group, self.damaged) for group in groups}
        for node in self._first_voters.voters:
            self.add_node(node)
        self.schedule(1, self._client)

    def _client(self) -> None:
        """Act as one of many clients: write to a node that may or may not lead."""
        if self._is_quiet:
            return
        self.schedule(1 + self.chance.randrange(self.settings.write_pause_max), self._client)
        group = self.chance.choice(list(self.checks))
        leader = self.leader(group)
        if leader is not None and self.chance.random() < 0.8:
            self.write(self.nodes[leader.raft.node], group, self._padding())
            return
        up = [machine for machine in self.nodes.values() if group in machine.replicas]
        if up:
            self.write(self.chance.choice(up), group)

    def _padding(self) -> bytes:
        """Return padding for a large record; rarely, and only where bytes take time."""
        narrow = self.settings.narrow
        if narrow is None or self.chance.random() >= narrow.large_rate:
            return b""
        self.count("large records")
        return bytes(narrow.large_bytes)

    def _narrow_ways(self) -> NarrowWays | None:
        narrow = self.settings.narrow
        if narrow is None:
            return None
        return NarrowWays(narrow, self.settings.network.delay_max, self.schedule, self._deliver)

    def _tick(self, machine: SimNode, period: int) -> None:
        if self.nodes.get(machine.node) is not machine:
            return  # replaced by another machine
        self.schedule(period, partial(self._tick, machine, period))
        if machine.is_up:
            self.steps += 1
            self.act(machine, machine.tick)

    def _deliver(self, group: GroupId, message: Message | Beat) -> None:
        machine = self.nodes.get(message.target)
        if machine is None or not machine.is_up:
            return
        self.steps += 1
        if isinstance(message, Beat):
            self.act(machine, partial(machine.receive, message))
        else:
            self.act(machine, partial(machine.deliver, group, message))

    def _schedule_sync(self, node: NodeId, delay: int, callback: Callable[[], None]) -> None:
        def happen() -> None:
            machine = self.nodes.get(node)
            if machine is not None and machine.is_up:
                self.steps += 1
                self.act(machine, partial(machine.sync_done, callback))

        self.schedule(delay, happen)

    def _opened(self, replica: Replica) -> None:
        machine = self.nodes[replica.raft.node]
        replica.raft.is_sending = partial(self.network.is_sending, replica.group, replica.raft.node)
        has_forgotten = replica.group in machine.has_forgotten
        if has_forgotten and self.settings.flush is not FlushPolicy.ALWAYS:
            self.count("starts that may have forgotten")
        if has_forgotten and self.settings.nodes == 1:
            self.checks[replica.group].forgot(replica, machine.durable[replica.group])
        key = replica.raft.node, replica.group
        self._watches[key] = Watch(replica, self.checks[replica.group])
