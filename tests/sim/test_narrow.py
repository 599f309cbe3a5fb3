"""Links on which bytes take time: a record that takes longer than an election is still written."""

import heapq
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count, permutations

import pytest

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.net.config import LinkConfig
from kafkaesque.raft.messages import Heartbeat, Message
from kafkaesque.raft.roster import Beat
from kafkaesque.sim.many import Failure, Kind, try_seed
from kafkaesque.sim.narrow import NarrowWays
from kafkaesque.sim.network import Network
from kafkaesque.sim.run import STEPS
from kafkaesque.sim.settings import Narrow, NetworkFaults, Settings, draw_narrow
from kafkaesque.sim.world import World
from kafkaesque.types import GroupId, NodeId
from tests.net.messages import SOURCE, TARGET, an_append

GROUP = "group-0"
NARROW = Narrow()
ELECTION_MS = 200
"""The longest timeout of an election: twice ten ticks of ten milliseconds."""

LARGE = bytes(5 * ELECTION_MS * NARROW.bytes_per_ms)
STEPS_MAX = 20_000
DELAY = 2


def a_world(version_max: int, seed: int) -> World:
    """Three nodes with a leader and no writers."""
    links = LinkConfig(
        whole_bytes_max=NARROW.links.whole_bytes_max,
        piece_bytes=NARROW.links.piece_bytes,
        version_max=version_max,
    )
    world = World(seed, Settings(narrow=replace(NARROW, links=links)))
    world.stop_clients()
    assert world.run_until(lambda: is_led(world), STEPS_MAX)
    return world


def is_led(world: World) -> bool:
    leader = world.leader(GROUP)
    return leader is not None and leader.is_serving and leader.raft.term == term(world)


def term(world: World) -> int:
    return max(machine.replicas[GROUP].raft.term for machine in world.nodes.values())


def write(world: World, padding: bytes = b"") -> None:
    leader = world.leader(GROUP)
    assert leader is not None
    world.write(world.nodes[leader.raft.node], GROUP, padding)


def acknowledged(world: World) -> int:
    return world.checks[GROUP].acknowledged


@pytest.mark.parametrize("seed", range(3))
def test_a_large_record_is_acknowledged_and_the_leader_stays(seed: int) -> None:
    world = a_world(2, seed)
    before, begun_ms = term(world), world.clock.time
    write(world, LARGE)
    assert world.run_until(lambda: acknowledged(world) == 1, STEPS_MAX)
    assert world.clock.time - begun_ms > 4 * ELECTION_MS, "it took longer than any election"
    assert term(world) == before


@pytest.mark.parametrize("seed", range(3))
def test_with_whole_frames_a_large_record_costs_one_leader_after_another(seed: int) -> None:
    """The old protocol: heartbeats wait behind the record, which is never acknowledged."""
    world = a_world(1, seed)
    before = term(world)
    for _ in range(5):
        assert world.run_until(lambda: is_led(world), STEPS_MAX)
        led = term(world)
        write(world, LARGE)  # as a client retries a write with an unknown outcome
        assert world.run_until(lambda led=led: term(world) > led, STEPS_MAX)  # type: ignore[misc]
    assert acknowledged(world) == 0
    assert term(world) >= before + 5


@pytest.mark.parametrize("seed", range(3))
def test_a_large_record_is_sent_once_to_each_follower(seed: int) -> None:
    """Answers to heartbeats arrive while it is in flight, and do not mean that it was lost."""
    world = a_world(2, seed)
    write(world, LARGE)
    leader = world.leader(GROUP)
    assert leader is not None
    assert world.run_until(lambda: acknowledged(world) == 1, STEPS_MAX)
    write(world)
    assert world.run_until(lambda: is_settled(world), STEPS_MAX)
    for node in world.nodes.keys() - {leader.raft.node}:
        assert 1.0 <= share_of_log(world, leader, node) < 1.5


@pytest.mark.parametrize("seed", range(3))
def test_a_follower_that_was_away_is_sent_a_large_record_about_once(seed: int) -> None:
    """The leader probes it, and each answer to a heartbeat could make it probe again."""
    world = a_world(2, seed)
    leader = world.leader(GROUP)
    assert leader is not None
    away = next(node for node in world.nodes if node != leader.raft.node)
    ends = leader.raft.node, away
    world.nodes[away].kill()
    write(world, LARGE)
    assert world.run_until(lambda: acknowledged(world) == 1, STEPS_MAX)
    assert world.run_until(lambda: not world.network.is_sending(GROUP, *ends), STEPS_MAX)
    before = share_of_log(world, leader, away)
    world.start(world.nodes[away])
    assert world.run_until(lambda: is_settled(world), STEPS_MAX)
    assert 1.0 <= share_of_log(world, leader, away) - before < 2.5


def is_settled(world: World) -> bool:
    """Whether all have the same log, and nothing waits to be sent."""
    rafts = [machine.replicas[GROUP].raft for machine in world.nodes.values()]
    pairs = permutations(world.nodes, 2)
    is_sending = any(world.network.is_sending(GROUP, *ends) for ends in pairs)
    return len({(raft.end, raft.commit) for raft in rafts}) == 1 and not is_sending


def share_of_log(world: World, leader: Replica, node: NodeId) -> float:
    """Return how many times the bytes of its log a leader has sent to a node."""
    assert world.ways is not None
    entries = leader.log.entries(leader.log.start.index, 1 << 30)
    return world.ways.sent_bytes[leader.raft.node, node] / sum(entry.size for entry in entries)


# ── the network itself ───────────────────────────────────────────────────────────────────────


class Timed:
    """A narrow network, and when each message arrived."""

    def __init__(self) -> None:
        self.now = 0
        self.arrived: list[tuple[int, str]] = []
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serials = count()
        ways = NarrowWays(NARROW, DELAY, self._schedule, self._deliver)
        chance = random.Random(1)
        self.network: Network[Message | Beat] = Network(
            NetworkFaults(), chance, self._schedule, self._deliver, ways
        )

    def play(self, until: int = 1 << 40) -> list[tuple[int, str]]:
        """Let time pass; return what has arrived, and when."""
        while self._events and self._events[0][0] <= until:
            self.now, _, call = heapq.heappop(self._events)
            call()
        return self.arrived

    def _schedule(self, delay: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._serials), call))

    def _deliver(self, group: GroupId, message: Message | Beat) -> None:
        self.arrived.append((self.now, type(message).__name__))


def test_bytes_take_time_and_small_messages_overtake_large_ones() -> None:
    timed = Timed()
    timed.network.send(GROUP, an_append(bytes(10_000)))
    timed.play(until=30)
    heartbeat = Heartbeat(source=SOURCE, target=TARGET, term=1, commit=0)
    timed.network.send(GROUP, heartbeat)
    timed.network.send(GROUP, an_append())
    assert timed.network.is_sending(GROUP, SOURCE, TARGET)
    (first, one), (second, two), (third, three) = timed.play()
    assert (one, two, three) == ("Heartbeat", "AppendRequest", "AppendRequest")
    assert first <= 30 + 3 * NARROW.links.piece_bytes // NARROW.bytes_per_ms + DELAY
    assert second >= 10_000 // NARROW.bytes_per_ms + DELAY
    assert third >= second
    assert not timed.network.is_sending(GROUP, SOURCE, TARGET)


def test_a_cut_loses_what_is_in_flight_and_the_next_frame_is_whole() -> None:
    timed = Timed()
    timed.network.send(GROUP, an_append(bytes(10_000)))
    timed.play(until=30)
    timed.network.cut(SOURCE, TARGET)
    timed.network.heal()
    timed.network.send(GROUP, an_append(bytes(5_000)))
    assert [name for _, name in timed.play()] == ["AppendRequest"]


# ── seeds ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(20))
def test_clusters_on_narrow_links_keep_their_promises(seed: int) -> None:
    result = try_seed(seed, STEPS, Kind.NARROW)
    assert not isinstance(result, Failure), result.trace


def test_narrow_seeds_write_large_records_that_take_longer_than_an_election() -> None:
    settings = [draw_narrow(seed) for seed in range(20)]
    takes = [one.narrow.large_bytes / one.narrow.bytes_per_ms for one in settings if one.narrow]
    assert len(takes) == len(settings)
    assert min(takes) >= settings[0].raft.election_ticks * settings[0].tick_ms
    assert len(set(takes)) > 1
