"""Brokers that join a simulated cluster while it runs, and how they become catalog voters.

A joining broker asks any broker for a node id, repeatedly, with the same data folder. Then it
starts empty, knows no other broker, and learns everything from the leader of the catalog.
"""

from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.callbacks import ignore
from kafkaesque.entry import Voters
from kafkaesque.machines.catalog.catalog_commands import (
    AdmitBroker,
    Carried,
    CatalogAnswer,
    DrainBroker,
)
from kafkaesque.machines.catalog.features import supported
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.machines.catalog.layout import Host, layout_of
from kafkaesque.machines.catalog.move_planning import plan
from kafkaesque.machines.catalog.voter_choice import VOTERS_MAX
from kafkaesque.raft.leadership import Leadership
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation
from kafkaesque.types import Index, NodeId

_ASK_PAUSE = 200
_DIRECTORY_BYTES = 16


class Growth:
    """Lets brokers join, one after the other."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._left = world.settings.late
        self._directory = self._next_directory()

    @property
    def is_done(self) -> bool:
        """Whether all have joined."""
        return self._left == 0

    def begin(self) -> None:
        """Start to join brokers."""
        if self._left:
            self._world.schedule(self._world.chance.randrange(_ASK_PAUSE), self._ask)

    def _ask(self) -> None:
        world = self._world
        if not self._left:
            return
        world.schedule(1 + world.chance.randrange(2 * _ASK_PAUSE), self._ask)
        able = [machine for machine in world.able() if self._knows_the_first(machine)]
        if able:
            command, directory = self._application(), self._directory

            def answered(answer: CatalogAnswer) -> None:
                if isinstance(answer, Carried):
                    self._admitted(answer.first_id, directory)
                else:
                    world.count(f"refused: {type(answer).__name__}")

            world.ask_broker(world.chance.choice(able), lambda b: b.ask(command, answered))

    def _application(self) -> AdmitBroker:
        node = len(self._world.nodes) + 1
        rack = f"rack-{node % self._world.settings.racks}"
        return AdmitBroker(
            directory=self._directory,
            host=f"broker-{node}",
            port=9092,
            rack=rack,
            levels=dict(supported()),
        )

    def _knows_the_first(self, machine: BrokerNode) -> bool:
        """Return whether the cluster's first brokers have all registered."""
        assert machine.broker is not None
        return len(machine.broker.catalog.brokers) >= self._world.settings.brokers

    def _admitted(self, node: NodeId, directory: bytes) -> None:
        if node in self._world.nodes:
            if self._world.directories[node] != directory:
                raise Violation(f"two brokers were given the number {node}")
            return  # it had asked twice
        self._world.count("brokers joined")
        self._left -= 1
        self._directory = self._next_directory()
        self._world.add(node, Voters(voters=()), directory)

    def _next_directory(self) -> bytes:
        return self._world.chance.randbytes(_DIRECTORY_BYTES)


class _Reign:
    """One observed leadership of the catalog."""

    def __init__(self, leadership: Leadership, voters: Voters, time: int) -> None:
        self.leadership = leadership
        self.voters = voters
        self.active_ms = 0
        """How long its process ran: while paused it could not check anything."""
        self.commits: list[tuple[int, Index]] = [(0, 0)]
        self._acted_at = time

    def acted(self, time: int, commit: Index, pause_max: int) -> None:
        """Record the commit index over time."""
        self.active_ms += min(time - self._acted_at, pause_max)
        self._acted_at = time
        if commit > self.commits[-1][1]:
            self.commits.append((self.active_ms, commit))


class VoterChecks:
    """Invariants whenever the leader of the catalog makes a broker a voter."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._reigns: dict[NodeId, _Reign] = {}

    def begin(self) -> None:
        """Start to watch."""
        self._world.on_acted = self._after_step

    def _after_step(self, node: NodeId) -> None:
        world = self._world
        machine = world.nodes[node]
        if machine.broker is None:
            self._reigns.pop(node, None)
            return
        replica = machine.broker.replicas.by_group.get(CATALOG_GROUP)
        if replica is None or replica.raft.leadership is None:
            self._reigns.pop(node, None)
            return
        leadership, voters, time = replica.raft.leadership, replica.raft.voters, world.clock.time
        reign = self._reigns.get(node)
        if reign is None or reign.leadership is not leadership:
            reign = self._reigns[node] = _Reign(leadership, voters, time)
        reign.acted(time, replica.raft.commit, 2 * world.settings.tick_ms)
        for new in set(voters.voters) - set(reign.voters.voters):
            self._may_vote(reign, new)
        reign.voters = voters

    def _may_vote(self, reign: _Reign, new: NodeId) -> None:
        """A new voter must have everything that was committed a while ago."""
        self._world.count("voters added")
        ago = reign.active_ms - 3 * self._world.settings.broker.cluster.look_ms
        needed = max(commit for time, commit in reign.commits if time <= max(0, ago))
        match = reign.leadership.progress[new].match
        if match < needed:
            raise Violation(f"broker {new} may vote with {match} of {needed} that was committed")


def end_drains(world: BrokerWorld) -> bool:
    """End all drains; return whether the leader of the catalog knows that none is left."""
    leader = world.leading(CATALOG_GROUP)
    if leader is None:
        return False
    machine = world.nodes[leader.raft.node]
    assert machine.broker is not None
    draining = [b.node for b in machine.broker.catalog.brokers.values() if b.is_draining]
    for node in draining:
        world.ask_broker(machine, partial(_end_drain, node))
    return not draining


def _end_drain(node: NodeId, broker: Broker) -> None:
    # Repeated until its effect shows.
    broker.carry_out(DrainBroker(node=node, is_draining=False), ignore)


def has_right_layout(world: BrokerWorld) -> bool:
    """Return whether there is nothing left to replace, to drain or to grow."""
    leader = world.leading(CATALOG_GROUP)
    if leader is None:
        return False
    broker = world.nodes[leader.raft.node].broker
    assert broker is not None
    layout = layout_of(broker.catalog.topics.values())
    hosts = dict.fromkeys(world.nodes, Host())
    return not layout.targets and not plan(layout, hosts, world.chance, len(layout.replicas))


def has_right_voters(world: BrokerWorld) -> bool:
    """Return whether the catalog has its target number of voters, and all other brokers learn."""
    leader = world.leading(CATALOG_GROUP)
    if leader is None:
        return False
    count = min(VOTERS_MAX, len(world.nodes) - (1 - len(world.nodes) % 2))
    voters = leader.raft.voters
    return len(voters.voters) == count and set(voters.members) == world.nodes.keys()
