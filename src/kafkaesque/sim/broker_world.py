"""A simulated cluster of whole brokers: catalog, placement, leaders, coordinators and all.

Time and chance are as in `sim/world.py`; what runs on the disks is the class `Broker` itself. The
brokers reach each other through `Carrier`, the simulated twin of the links between real ones.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import msgspec

from kafkaesque.broker.broker import CATALOG_GROUP, Broker
from kafkaesque.broker.copies import CopyAsked, CopyTold
from kafkaesque.broker.leaders import LeadersTold
from kafkaesque.broker.membership import Membership
from kafkaesque.broker.peers import AnswerTo, CopyTo, RangeTo, ReplyTo
from kafkaesque.broker.ranges import RangeAnswer, RangeAsked
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.wall_clocks import ClockTold
from kafkaesque.entry import LogStart, Voters
from kafkaesque.errors import LogError
from kafkaesque.machines.catalog import INTERNAL_TOPICS
from kafkaesque.machines.catalog_commands import Command, Reply, Unknown
from kafkaesque.machines.transaction_questions import Answer, Question
from kafkaesque.raft.messages import AppendAccepted, Message
from kafkaesque.raft.roster import Beat
from kafkaesque.sim.broker_checks import BrokerChecks
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_settings import BrokerSettings, draw_brokers
from kafkaesque.sim.checks import GroupChecks, Watch
from kafkaesque.sim.disk import PowerLost, SimDisk
from kafkaesque.sim.network import Network
from kafkaesque.sim.settings import NetworkFaults
from kafkaesque.sim.world import NodeClock, WorldClock
from kafkaesque.types import GroupId, NodeId

_STEPS_AT_ONCE = 20
_encode = msgspec.msgpack.encode
_commands = msgspec.msgpack.Decoder(Command)
_questions = msgspec.msgpack.Decoder(Question)
_ranges_asked = msgspec.msgpack.Decoder(RangeAsked)
_copies_asked = msgspec.msgpack.Decoder(CopyAsked)
Call: TypeAlias = Literal["command", "transaction", "range", "copy"]
_DECODERS: dict[Call, msgspec.msgpack.Decoder[Any]] = {
    "command": msgspec.msgpack.Decoder(Reply),
    "transaction": msgspec.msgpack.Decoder(Answer),
    "range": msgspec.msgpack.Decoder(RangeAnswer),
    "copy": msgspec.msgpack.Decoder(CopyTold),
}
"""What comes back of each kind of call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command on its way."""

    source: NodeId
    target: NodeId
    serial: int
    command: bytes
    kind: Call = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A reply on its way back."""

    source: NodeId
    target: NodeId
    serial: int
    reply: bytes
    kind: Call = "command"


Word: TypeAlias = Reply | Answer | RangeAnswer | CopyTold
"""What comes back of a call."""

Frame: TypeAlias = Message | Beat | LeadersTold | ClockTold | Asked | Answered


class Carrier:
    """One broker's way to the others."""

    def __init__(self, world: "BrokerWorld", node: NodeId) -> None:
        self._world = world
        self._node = node
        self._waiting: dict[int, Callable[[Any], None]] = {}

    def send(self, group: GroupId, message: Message) -> None:
        """Carry a message of a group."""
        if isinstance(message, AppendAccepted):
            self._world.checks.accepted(group, message)
        self._world.network.send(group, message)

    def is_sending(self, group: GroupId, target: NodeId) -> bool:
        """Return whether an append still waits: this world's network takes all at once."""
        return self._world.network.is_sending(group, self._node, target)

    def beat(self, beat: Beat) -> None:
        """Carry a beat."""
        self._world.network.send("", beat)

    def tell(self, told: LeadersTold | ClockTold) -> None:
        """Carry word of leaders or of the time."""
        self._world.network.send("", told)

    def ask(self, target: NodeId, command: Command, reply: ReplyTo) -> None:
        """Carry a command, at most once, and the reply back, or give up after a while."""
        self._ask(target, _encode(command), reply)

    def consult(self, target: NodeId, question: Question, answer: AnswerTo) -> None:
        """Carry a question about transactions, as a command is carried."""
        self._ask(target, _encode(question), answer, "transaction")

    def ask_range(self, target: NodeId, asked: RangeAsked, told: RangeTo) -> None:
        """Carry a question for some of a log, as a command is carried."""
        self._ask(target, _encode(asked), told, "range")

    def ask_copy(self, target: NodeId, asked: CopyAsked, told: CopyTo) -> None:
        """Carry a question how a copy is, as a command is carried."""
        self._ask(target, _encode(asked), told, "copy")

    def _ask(
        self,
        target: NodeId,
        data: bytes,
        reply: Callable[[Any], None],
        kind: Call = "command",
    ) -> None:
        world = self._world
        serial = world.next_serial()
        self._waiting[serial] = reply
        life = world.nodes[self._node].life
        asked = Asked(
            source=self._node,
            target=target,
            serial=serial,
            command=data,
            kind=kind,
        )
        world.network.send("", asked)

        def give_up() -> None:
            if world.nodes[self._node].life == life:
                world.act(world.nodes[self._node], lambda: self.answered(serial, Unknown()))

        world.schedule(world.settings.ask_ms, give_up)

    def answered(self, serial: int, reply: Word) -> None:
        """Hand a reply to the one who waits for it, if somebody still does."""
        waiting = self._waiting.pop(serial, None)
        if waiting is not None:
            waiting(reply)

    def forget(self) -> None:
        """Forget those who wait: their process has ended."""
        self._waiting.clear()


class BrokerWorld:
    """A cluster of brokers, from one seed."""

    def __init__(self, seed: int, settings: BrokerSettings | None = None) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.settings = settings if settings is not None else draw_brokers(self.chance)
        self.clock = WorldClock()
        self.steps = 0
        self.counts: dict[str, int] = {}
        self.nodes: dict[NodeId, BrokerNode] = {}
        self.directories: dict[NodeId, bytes] = {}
        self.on_acted: Callable[[NodeId], None] = _ignore
        """Told of every node that did something, after it was checked."""
        self.groups: dict[GroupId, GroupChecks] = {}
        self.rotten: dict[GroupId, set[NodeId]] = {}
        """Where files of a group were damaged, until they are known to be mended."""
        self.checks = BrokerChecks(self.groups)
        self.network: Network[Frame] = Network(
            self.settings.network, self.chance, self.schedule, self._deliver
        )
        self._carriers: dict[NodeId, Carrier] = {}
        self._watches: dict[Replica, Watch] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._asked: set[int] = set()
        everybody = range(1, self.settings.brokers + 1)
        voters = self.settings.voters
        first = Voters(voters=tuple(everybody[:voters]), learners=tuple(everybody[voters:]))
        for node in everybody:
            self.add(node, first, node.to_bytes(16, "big"))

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def schedule(self, delay: int, callback: Callable[[], None]) -> None:
        """Let something happen later."""
        heapq.heappush(self._events, (self.clock.time + delay, self.next_serial(), callback))

    def next_serial(self) -> int:
        """Return a number that was never returned before."""
        self._serial += 1
        return self._serial

    def step(self) -> None:
        """Let the next event happen."""
        time, _, callback = heapq.heappop(self._events)
        self.clock.time = time
        callback()

    def run(self, steps: int) -> None:
        """Let this many steps happen; raises Violation."""
        end = self.steps + steps
        while self.steps < end:
            self.step()

    def run_until(self, is_done: Callable[[], bool], steps_max: int) -> bool:
        """Run until something holds; return whether it did before about `steps_max` steps."""
        for _ in range(0, steps_max, _STEPS_AT_ONCE):
            if is_done():
                return True
            for _ in range(_STEPS_AT_ONCE):
                self.step()
        return is_done()

    def count(self, kind: str) -> None:
        """Count something for the table at the end."""
        self.counts[kind] = self.counts.get(kind, 0) + 1

    # ── nodes ────────────────────────────────────────────────────────────────────────────────

    def able(self) -> list[BrokerNode]:
        """Return the nodes that clients can talk to."""
        return [
            machine
            for machine in self.nodes.values()
            if machine.is_ready and machine.is_up and not self.is_paused(machine)
        ]

    def is_paused(self, machine: BrokerNode) -> bool:
        """Whether a node's process stands still."""
        return machine.paused_until > self.clock.time

    def start(self, machine: BrokerNode) -> None:
        """Start a node that is down; it may fail, and is tried again later."""
        self._carriers[machine.node].forget()
        try:
            self.act(machine, machine.start)
        except LogError:
            self.count("starts failed by the disk")
            machine.kill()

    def heal(self) -> None:
        """End all faults: start every node, mend the network, make the disks good."""
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
        """Let a node do something; the power may fail in the middle of it. Then check it."""
        try:
            action()
            machine.after_event()
            if machine.broker is not None:
                machine.broker.flush()
                machine.after_event()
            self._check(machine)  # which reads, and what reads may repair an index
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
        """Check a replica at once: somebody is being told of its commit."""
        self._watches[replica].after_step()

    def ask_broker(self, machine: BrokerNode, question: Callable[[Broker], None]) -> None:
        """Let a client ask something of a broker that is up; errors are for the client."""
        broker = machine.broker
        assert broker is not None
        self.act(machine, lambda: question(broker))

    def leading(self, group: GroupId) -> Replica | None:
        """Return the replica that serves a group in the newest term, if one does."""
        found = [
            replica
            for machine in self.nodes.values()
            if machine.broker is not None
            and (replica := machine.broker.replicas.by_group.get(group)) is not None
            and replica.is_serving
        ]
        return max(found, key=lambda replica: replica.raft.term, default=None)

    def add(self, node: NodeId, voters: Voters, directory: bytes) -> None:
        """Put another machine there, with an empty disk, and start it."""
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
                if frame.serial not in self._asked:  # a connection never doubles
                    self._asked.add(frame.serial)
                    reply = partial(self._reply, frame, machine.life)
                    match frame.kind:
                        case "transaction":
                            broker.consult(_questions.decode(frame.command), reply)
                        case "range":
                            reply(broker.give_range(_ranges_asked.decode(frame.command)))
                        case "copy":
                            reply(broker.tell_copy(_copies_asked.decode(frame.command)))
                        case "command":
                            broker.carry_out(_commands.decode(frame.command), reply)
            case Answered():
                reply_of = _DECODERS[frame.kind].decode(frame.reply)
                self._carriers[machine.node].answered(frame.serial, reply_of)
            case _:
                broker.deliver(group, frame)

    def _reply(self, asked: Asked, life: int, reply: Word) -> None:
        if self.nodes[asked.target].life == life:
            answer = Answered(
                source=asked.target,
                target=asked.source,
                serial=asked.serial,
                reply=_encode(reply),
                kind=asked.kind,
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
            # What machines live on is compacted by the brokers themselves.
            topic = group.split(".")[0]
            self.groups[group].is_compacted = topic in (CATALOG_GROUP, *INTERNAL_TOPICS)
        if not self.groups[group].is_compacted:
            self.groups[group].retention_ms = self.settings.retention_ms
        self._watches[replica] = Watch(replica, self.groups[group], self.clock.now_ms)
        install = replica.log.install

        def counted(start: LogStart) -> None:
            self.count("installs")
            install(start)

        replica.log.install = counted  # type: ignore[method-assign]


def _ignore(_: NodeId) -> None:
    """Nobody watches."""
