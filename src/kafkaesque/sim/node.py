"""One simulated machine: a real store and real replicas on a simulated disk.

A node is *up* while its process runs. It goes down by a kill (written data stays, as the kernel
keeps it), by a power loss (unsynced data is lost or torn), or on its own, when its disk fails. It
comes up again through the same recovery code as in production.
"""

import random
from collections.abc import Callable

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.storage.store import Store
from kafkaesque.clock import Clock
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat, Roster
from kafkaesque.server.edge.event_log import EventLog
from kafkaesque.server_config import EventsConfig
from kafkaesque.sim.disk import SimDisk
from kafkaesque.sim.inode import CrashPolicy
from kafkaesque.sim.settings import Settings
from kafkaesque.topic_settings import FlushPolicy
from kafkaesque.types import GroupId, Index, NodeId

_TICKS_PER_SETTLING = 10

EVERY_LINE = EventsConfig(lines_per_second_max=1 << 30)
"""Finding a fault takes every line: a second of simulated time has many."""

Carry = Callable[[GroupId, Message | Beat], None]
"""Sends a message to its target; beats belong to no group."""


class SimNode:
    """A machine of the cluster, for the lifetime of its disk."""

    def __init__(  # noqa: PLR0913 - all that a machine is connected to
        self,
        node: NodeId,
        settings: Settings,
        disk: SimDisk,
        clock: Clock,
        chance: random.Random,
        send: Carry,
        opened: Callable[[Replica], None],
        first_voters: Voters,
    ) -> None:
        self.node = node
        self.disk = disk
        self.is_up = False
        self.events = EventLog(clock, EVERY_LINE)
        self.replicas: dict[GroupId, Replica] = {}
        self.store: Store | None = None
        self.error: LogError | None = None
        self.durable: dict[GroupId, Index] = {}
        """For each group, what certainly survives a power loss."""
        self.has_forgotten: set[GroupId] = set()
        """Groups that may have lost unsynced data, until they are opened again."""
        self._ticks = 0
        self.roster = Roster(node, settings.raft, session=1)
        self._settings = settings
        self._clock = clock
        self._chance = chance
        self._send = send
        self._opened = opened
        self._first = first_voters

    def start(self) -> None:
        """Start the process: open the store and every log in it, as after any stop."""
        assert not self.is_up
        self.error = None
        self.store = Store.open(
            self.disk,
            self._settings.log,
            self._clock,
            self.node,
            self._on_failed,
            self.events,
        )
        self.is_up = True
        self.roster = Roster(self.node, self._settings.raft, 1 + self._chance.getrandbits(60))
        for group in list(self.store.journal.groups):
            self._run(group, open_or_refill(self.store, group))
        self.store.flusher.kick()

    def create(self, group: GroupId, voters: Voters) -> None:
        """Create a replica of a group that this node has never held."""
        assert self.store is not None
        self._run(group, self.store.create_log(group, voters))
        self.after_event()

    def tick(self) -> None:
        """Advance every replica by a tick."""
        if self.store is not None:
            self.store.flusher.pass_time(self._clock.monotonic_ms())
        for beat in self.roster.tick():
            self._send("", beat)
        for group in list(self.roster.awake):
            self.replicas[group].tick()
        self.after_event()
        self._ticks += 1
        if self.store is not None and self._ticks % _TICKS_PER_SETTLING == 0:
            self.store.flusher.settle()

    def deliver(self, group: GroupId, message: Message) -> None:
        """Deliver a message; an unknown group gets an empty replica that only learns."""
        if group not in self.replicas:
            self.create(group, self._first_voters(group))
        self.replicas[group].step(message)
        self.after_event()

    def receive(self, beat: Beat) -> None:
        """Deliver another node's beat."""
        self.roster.receive(beat)
        self.after_event()

    def _first_voters(self, group: GroupId) -> Voters:
        """Return a new group's voters on this node, as metadata would give them."""
        return self._first if self.node in self._first.voters else Voters(voters=())

    def sync_done(self, callback: Callable[[], None]) -> None:
        """Run the callback of a finished sync."""
        callback()
        self.after_event()

    @property
    def is_refilling(self) -> bool:
        """Whether a replica here was found damaged and waits to be refilled by its peers."""
        return any(replica.raft.is_recovering for replica in self.replicas.values())

    def after_event(self) -> None:
        """Sync written data, and handle replicas that had to stop."""
        for group, replica in list(self.replicas.items()):
            if self.is_up and replica.error is None and replica.damage.found:
                # As an operator does; a stopped replica takes no further part.
                replica.stop(CorruptLog(group, 0, replica.damage.found[0].reason))
            if self.is_up and replica.error is not None:
                self._on_replica_stopped(group, replica.error)
        if self.is_up:
            assert self.store is not None
            self.store.flusher.kick()

    def stop_cleanly(self) -> None:
        """Stop the process the way an operator does."""
        assert self.store is not None
        try:
            self.store.close()
        except LogError as error:
            self.error = error
        self.kill()

    def kill(self) -> None:
        """Kill the process; the machine keeps running."""
        self._go_down()
        self.disk.kill()

    def lose_power(self) -> None:
        """Cut the machine's power."""
        self._go_down()
        self.has_forgotten |= self.durable.keys()
        self.disk.crash(CrashPolicy.TORN)

    def give_up(self) -> None:
        """End a start that failed half-way."""
        self.kill()

    def _run(self, group: GroupId, log: PartitionLog) -> None:
        assert self.store is not None
        if self._settings.flush is not FlushPolicy.ALWAYS:
            settings = self._settings
            log.configure(settings.log, policy=settings.flush, flush_ms=settings.flush_ms)
        replica = self.store.replica(log, self._settings.raft, self._chance, self._send)
        self.replicas[group] = replica
        self.roster.add(group, replica.raft)
        self._opened(replica)
        self.durable[group] = max(self.durable.get(group, 0), log.durable)
        self.has_forgotten.discard(group)

    def _on_replica_stopped(self, group: GroupId, error: LogError) -> None:
        assert self.store is not None
        if isinstance(error, CorruptLog):
            self.store.refill_log(group, error)
            self._run(group, self.store.open_log(group))
        else:
            self._on_failed(error)

    def _on_failed(self, error: LogError) -> None:
        """Handle a failed disk: stop, as a broker does, and be restarted later."""
        if self.is_up:
            self.error = error
            self.kill()

    def _go_down(self) -> None:
        self.is_up = False
        if self.store is not None:
            self.store.flusher.stop()
        for group, replica in self.replicas.items():
            self.durable[group] = max(self.durable[group], replica.log.durable)
            replica.stop(LogError("the node is down"))
        self.replicas = {}
        self.store = None


def open_or_refill(store: Store, group: GroupId) -> PartitionLog:
    """Open a log; a damaged one is emptied at once: here, other copies are always good."""
    try:
        return store.open_log(group)
    except CorruptLog as damage:
        store.refill_log(group, damage)
        return store.open_log(group)
