"""A simulated cluster of whole brokers: catalog, placement, leaders, coordinators and all.

Time and chance are as in `sim/world.py`; the disks run the class `Broker` itself. The brokers reach
each other through `Carrier`, the simulated counterpart of real links.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import msgspec

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.calls import CALLS, CallKind
from kafkaesque.broker.cluster.membership import Membership
from kafkaesque.broker.cluster.wall_clocks import ClockTold
from kafkaesque.broker.replication.leader_table import LeadersTold
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.callbacks import ignore
from kafkaesque.entry import LogStart, Voters
from kafkaesque.errors import LogError
from kafkaesque.machines.catalog.catalog import INTERNAL_TOPICS
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.raft.messages import AppendAccepted, Message
from kafkaesque.raft.roster import Beat
from kafkaesque.sim.broker_checks import BrokerChecks
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_settings import BrokerSettings, draw_brokers
from kafkaesque.sim.checks import GroupChecks, Watch
from kafkaesque.sim.disk import PowerLost, SimDisk
from kafkaesque.sim.network import Network
from kafkaesque.sim.schedule import NodeClock, Schedule
from kafkaesque.sim.settings import NetworkFaults
from kafkaesque.types import GroupId, NodeId

SLICE_MS = 1
"""The delay until the next slice of long work, with other events between."""
_encode = msgspec.msgpack.encode

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question in flight."""

    source: NodeId
    target: NodeId
    serial: int
    kind: int
    question: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A reply in flight."""

    source: NodeId
    target: NodeId
    serial: int
    kind: int
    reply: bytes


Frame: TypeAlias = Message | Beat | LeadersTold | ClockTold | Asked | Answered


class Carrier:
    """One broker's connection to the others."""

    def __init__(self, world: "BrokerWorld", node: NodeId) -> None:
        self._world = world
        self._node = node
        self._waiting: dict[int, Callable[[Any], None]] = {}

    def send(self, group: GroupId, message: Message) -> None:
        """Send a message of a group."""
        if isinstance(message, AppendAccepted):
            self._world.checks.accepted(group, message)
        self._world.network.send(group, message)

    def is_sending(self, group: GroupId, target: NodeId) -> bool:
        """Return whether an append still waits: this world's network accepts everything at once."""
        return self._world.network.is_sending(group, self._node, target)

    def beat(self, beat: Beat) -> None:
        """Send a beat."""
        self._world.network.send("", beat)

    def tell(self, told: LeadersTold | ClockTold) -> None:
        """Send the known leaders, or the time."""
        self._world.network.send("", told)

    def ask(
        self,
        target: NodeId,
        kind: CallKind[Q, A],
        question: Q,
        reply: Callable[[A | Refused | Unknown], None],
    ) -> None:
        """Send a question, at most once, and return the reply, or give up after a timeout."""
        world = self._world
        serial = world.next_serial()
        self._waiting[serial] = reply
        life = world.nodes[self._node].life
        asked = Asked(
            source=self._node,
            target=target,
            serial=serial,
            kind=kind.number,
            question=_encode(question),
        )
        world.network.send("", asked)

        def give_up() -> None:
            if world.nodes[self._node].life == life:
                world.act(world.nodes[self._node], lambda: self.answered(serial, Unknown()))

        world.schedule(world.settings.ask_ms, give_up)

    def answered(self, serial: int, reply: object) -> None:
        """Pass a reply to its callback, if one still waits."""
        waiting = self._waiting.pop(serial, None)
        if waiting is not None:
            waiting(reply)

    def forget(self) -> None:
        """Drop the waiting callbacks: their process has ended."""
        self._waiting.clear()


class BrokerWorld(Schedule):
    """A cluster of brokers, from one seed."""

    def __init__(self, seed: int, settings: BrokerSettings | None = None) -> None:
        super().__init__()
        self.seed = seed
        self.chance = random.Random(seed)
        self.settings = settings if settings is not None else draw_brokers(self.chance)
        self.nodes: dict[NodeId, BrokerNode] = {}
        self.directories: dict[NodeId, bytes] = {}
        self.on_acted: Callable[[NodeId], None] = ignore
        """Called for every node that acted, after its check."""
        self.groups: dict[GroupId, GroupChecks] = {}
        self.rotten: dict[GroupId, set[NodeId]] = {}
        """The nodes where files of a group were damaged, until known to be mended."""
        self.checks = BrokerChecks(self.groups)
        self.network: Network[Frame] = Network(
            self.settings.network, self.chance, self.schedule, self._deliver
        )
        self._carriers: dict[NodeId, Carrier] = {}
        self._watches: dict[Replica, Watch] = {}
        self._asked: set[int] = set()
        everybody = range(1, self.settings.brokers + 1)
        voters = self.settings.voters
        first = Voters(voters=tuple(everybody[:voters]), learners=tuple(everybody[voters:]))
        for node in everybody:
            self.add(node, first, node.to_bytes(16, "big"))

    # ── nodes ────────────────────────────────────────────────────────────────────────────────

    def able(self) -> list[BrokerNode]:
        """Return the nodes that clients can reach."""
        return [
            machine
            for machine in self.nodes.values()
            if machine.is_ready and machine.is_up and not self.is_paused(machine)
        ]

    def is_paused(self, machine: BrokerNode) -> bool:
        """Return whether a node's process is paused."""
        return machine.paused_until > self.clock.time

    def start(self, machine: BrokerNode) -> None:
        """Start a node that is down; if that fails, it is retried later."""
        self._carriers[machine.node].forget()
        try:
            self.act(machine, machine.start)
        except LogError:
            self.count("starts failed by the disk")
            machine.kill()

    def heal(self) -> None:
        """End all faults: start every node, heal the network, repair the disks."""
        self.network.heal()
        self.network.faults = NetworkFaults(delay_max=self.settings.network.delay_max)
        for machine in self.nodes.values():
            machine.paused_until = 0
            machine.disk.mend(self.settings.disk)
            machine.is_late = False
            machine.clock.ahead_ms = 0
            if not machine.is_up:
                self.start(machine)

    def act(self, machine: BrokerNode, action: Callable[[], None]) -> None:
        """Run an action on a node, in which the power may fail. Then check the node."""
        try:
            action()
            if machine.broker is not None:
                machine.broker.flush()
            machine.after_event()
            self._check(machine)  # the check reads, and a read may repair an index
        except PowerLost:
            self.count("power lost while writing")
            machine.lose_power()
        self.on_acted(machine.node)

    def _check(self, machine: BrokerNode) -> None:
        if machine.broker is not None:
            for replica in machine.broker.replicas.by_group.values():
                self._watches[replica].after_step()
            if machine.broker.has_catalog:
                self.checks.after_step(machine.node, machine.life, machine.broker)

    def watch_now(self, replica: Replica) -> None:
        """Check a replica at once: its commit is being reported."""
        self._watches[replica].after_step()

    def ask_broker(self, machine: BrokerNode, question: Callable[[Broker], None]) -> None:
        """Run a client's request at a broker that is up; errors are for the client."""
        broker = machine.broker
        assert broker is not None
        self.act(machine, lambda: question(broker))

    def leading(self, group: GroupId) -> Replica | None:
        """Return the replica that serves a group in the newest term, if any."""
        found = [
            replica
            for machine in self.nodes.values()
            if machine.broker is not None
            and (replica := machine.broker.replicas.by_group.get(group)) is not None
            and replica.is_serving
        ]
        return max(found, key=lambda replica: replica.raft.term, default=None)

    def add(self, node: NodeId, voters: Voters, directory: bytes) -> None:
        """Add another machine with an empty disk, and start it."""
        settings = self.settings
        clock = NodeClock(self.clock)
        disk = SimDisk(self.chance, partial(self._schedule_sync, node), settings.disk, clock=clock)
        carrier = self._carriers[node] = Carrier(self, node)
        membership = Membership(
            peers=carrier,
            voters=voters,
            host=f"broker-{node}",
            port=9092,
            rack=f"rack-{node % settings.racks}",
            directory=directory,
        )
        configs = settings.log, settings.broker
        machine = BrokerNode(node, disk, clock, self.chance, configs, membership, self._opened)
        machine.soon = partial(self._schedule_sync, node, SLICE_MS)
        self.nodes[node] = machine
        self.directories[node] = directory
        if node == settings.brokers > settings.voters and settings.late_ms:
            self.count("brokers that came late")
            machine.is_late = True
            self.schedule(settings.late_ms, partial(self._come_late, machine))
        else:
            self.start(machine)
        drift = settings.drift * (2 * self.chance.random() - 1)
        period = max(1, round(settings.tick_ms * (1 + drift)))
        self.schedule(self.chance.randrange(period), partial(self._tick, machine, period))

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _come_late(self, machine: BrokerNode) -> None:
        machine.is_late = False
        if not machine.is_up:
            self.start(machine)

    def _tick(self, machine: BrokerNode, period: int) -> None:
        self.schedule(period, partial(self._tick, machine, period))
        if machine.broker is not None and not self.is_paused(machine):
            self.steps += 1
            self.act(machine, machine.broker.tick)
        if machine.broker is not None and not self.is_paused(machine):
            dead = [node for node, other in self.nodes.items() if not other.is_up]
            self.checks.ticked(machine.node, machine.life, machine.broker, dead)

    def _deliver(self, group: GroupId, frame: Frame) -> None:
        machine = self.nodes.get(frame.target)
        if machine is None or machine.broker is None:
            return
        if self.is_paused(machine):  # it waits in the buffers of the system
            delay = machine.paused_until - self.clock.time
            self.schedule(delay, partial(self._deliver, group, frame))
            return
        self.steps += 1
        self.act(machine, partial(self._take, machine, machine.broker, group, frame))

    def _take(self, machine: BrokerNode, broker: Broker, group: GroupId, frame: Frame) -> None:
        match frame:
            case Beat():
                broker.receive_beat(frame)
            case LeadersTold():
                broker.receive_leaders(frame)
            case ClockTold():
                broker.clocks.receive(frame)
            case Asked():
                if frame.serial not in self._asked:  # a connection never duplicates
                    self._asked.add(frame.serial)
                    reply = partial(self._reply, frame, machine.life)
                    kind = CALLS[frame.kind]
                    broker.answer(kind, kind.question.decode(frame.question), reply)
            case Answered():
                answer = CALLS[frame.kind].answer.decode(frame.reply)
                self._carriers[machine.node].answered(frame.serial, answer)
            case _:
                broker.deliver(group, frame)

    def _reply(self, asked: Asked, life: int, reply: object) -> None:
        if self.nodes[asked.target].life == life:
            answer = Answered(
                source=asked.target,
                target=asked.source,
                serial=asked.serial,
                kind=asked.kind,
                reply=_encode(reply),
            )
            self.network.send("", answer)

    def _schedule_sync(self, node: NodeId, delay: int, callback: Callable[[], None]) -> None:
        life = self.nodes[node].life if node in self.nodes else 0

        def happen() -> None:
            machine = self.nodes[node]
            if machine.broker is None or machine.life != life:
                return
            if self.is_paused(machine):
                self.schedule(machine.paused_until - self.clock.time, happen)
                return
            self.steps += 1
            self.act(machine, callback)

        self.schedule(delay, happen)

    def _opened(self, replica: Replica) -> None:
        group = replica.group
        if group not in self.groups:
            rotten = self.rotten.setdefault(group, set())
            self.groups[group] = GroupChecks(group, rotten)
            # The brokers themselves compact the logs of machines.
            topic = group.split(".")[0]
            self.groups[group].is_compacted = topic in (CATALOG_GROUP, *INTERNAL_TOPICS)
        if not self.groups[group].is_compacted:
            self.groups[group].retention_ms = self.settings.retention_ms
        if self.groups[group].may_forget:
            before = self.groups[group].committed_end
            self.groups[group].forgot(replica, 0)
            if self.groups[group].committed_end < before:
                self.count("ends of logs forgotten")
        self._watches[replica] = Watch(replica, self.groups[group], self.clock.now_ms)
        install = replica.log.install

        def counted(start: LogStart) -> None:
            self.count("installs")
            install(start)

        replica.log.install = counted  # type: ignore[method-assign]
