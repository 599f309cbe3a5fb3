"""One seed of a cluster of brokers from start to end: faults, then quiet, then final checks."""

from collections.abc import Iterator

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, folder_of, group_of
from kafkaesque.sim.broker_clients import BrokerClients
from kafkaesque.sim.broker_growth import (
    Growth,
    VoterChecks,
    end_drains,
    has_right_layout,
    has_right_voters,
)
from kafkaesque.sim.broker_members import GroupMembers
from kafkaesque.sim.broker_mischief import BrokerMischief
from kafkaesque.sim.broker_rot import Rotting
from kafkaesque.sim.broker_setters import Setters
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_sharers import Sharers
from kafkaesque.sim.broker_transactors import Transactors
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation
from kafkaesque.sim.run import Report
from kafkaesque.types import GroupId

STEPS = 6_000
"""How long a seed has faults by default: longer than for bare logs, since more must start up."""

_PEACE_STEPS_MAX = 120_000


def run_brokers(seed: int, steps: int = STEPS, settings: BrokerSettings | None = None) -> Report:
    """Run one seed; raises Violation, or any assertion of the code under test."""
    world = BrokerWorld(seed, settings)
    clients = BrokerClients(world)
    mischief = BrokerMischief(world)
    growth = Growth(world)
    VoterChecks(world).begin()
    growth.begin()
    clients.begin()
    transactors = Transactors(world)
    transactors.begin()
    members = GroupMembers(world)
    members.begin()
    sharers = Sharers(world)
    sharers.begin()
    setters = Setters(world)
    setters.begin()
    mischief.begin()
    world.run(steps)
    mischief.stop()
    setters.stop()
    end_changes(world, growth)
    settle_members(world, members)
    sharers.pause()
    make_peace(world, clients, transactors)
    settle_sharers(world, sharers)
    mend_rot(world, mischief.rotting)
    check_end(world, clients)
    transactors.check_end()
    sharers.check_end()
    setters.check_end()
    counts = dict(world.counts)
    brokers = [machine.broker for machine in world.nodes.values() if machine.broker is not None]
    counts["repairs in the last lives"] = sum(broker.repairs.done for broker in brokers)
    counts["acknowledged"] = sum(clients.acknowledged.values())
    counts["elections"] = sum(len(checks.leaders) for checks in world.groups.values())
    counts["groups"] = len(world.groups)
    counts["partitions moved"] = sum(index in topic.moved for topic, index, _ in partitions(world))
    counts["messages dropped"] = world.network.dropped
    return Report(seed=seed, steps=world.steps, counts=counts)


def end_changes(world: BrokerWorld, growth: Growth) -> None:
    """Let all brokers join that want to, and end all drains."""

    def is_done() -> bool:
        world.heal()
        return growth.is_done and end_drains(world)

    if not world.run_until(is_done, _PEACE_STEPS_MAX):
        raise Violation("liveness: a broker cannot join the healed cluster, or is drained for ever")


def settle_members(world: BrokerWorld, members: GroupMembers) -> None:
    """Make the group's members stay; each partition must get one reader."""
    members.calm_down()

    def is_done() -> bool:
        world.heal()
        return members.are_settled()

    if not world.run_until(is_done, _PEACE_STEPS_MAX):
        raise Violation("liveness: a group of the healed cluster never settles")
    members.stop()


def settle_sharers(world: BrokerWorld, sharers: Sharers) -> None:
    """Make the members of share groups accept what they get; all of it must come to them."""
    sharers.calm_down()

    def is_done() -> bool:
        world.heal()
        return sharers.are_done()

    if not world.run_until(is_done, _PEACE_STEPS_MAX):
        raise Violation("liveness: members of a share group do not get what is there for them")
    sharers.pause()


def make_peace(world: BrokerWorld, clients: BrokerClients, transactors: Transactors) -> None:
    """End all faults; every partition must accept a write, then all brokers must agree."""
    world.heal()

    def are_ready() -> bool:
        world.heal()  # a sync that was doomed before may still fail a node
        return len(world.able()) == len(world.nodes)

    if not world.run_until(are_ready, _PEACE_STEPS_MAX):
        raise Violation("liveness: brokers of the healed cluster do not become ready")
    clients.stop()
    transactors.stop()
    if not world.run_until(transactors.are_ended, _PEACE_STEPS_MAX):
        raise Violation("liveness: transactions of the healed cluster are never ended")
    before = dict(clients.acknowledged)
    asked: dict[GroupId, int] = {}

    def accepts() -> bool:
        world.heal()
        able = world.able()
        waiting = [
            (topic, index, group)
            for topic, index, group in partitions(world)
            if not topic.is_internal and clients.acknowledged.get(group, 0) == before.get(group, 0)
        ]
        now_ms = world.clock.monotonic_ms()
        for topic, index, group in waiting:
            # One write at a time: a flood would put followers out of sync again and again.
            if able and now_ms >= asked.get(group, 0) + world.settings.ask_ms:
                asked[group] = now_ms
                broker = world.chance.choice(able).broker
                assert broker is not None
                clients.produce_to(broker, topic, index)
        return not waiting

    if not world.run_until(accepts, _PEACE_STEPS_MAX):
        raise Violation("liveness: a partition of the healed cluster accepts no write")

    def has_voters() -> bool:
        return end_drains(world) and has_right_voters(world)  # a drain may have come late

    if not world.run_until(has_voters, _PEACE_STEPS_MAX):
        raise Violation("liveness: the catalog of the healed cluster rests without enough voters")
    if not world.run_until(lambda: has_right_layout(world), _PEACE_STEPS_MAX):
        raise Violation("liveness: partitions of the healed cluster lack replicas")
    if not world.run_until(lambda: is_of_one_mind(world), _PEACE_STEPS_MAX):
        raise Violation("liveness: the brokers of the healed cluster never agree")


def mend_rot(world: BrokerWorld, rotting: Rotting) -> None:
    """Let all damage be found; it must be mended, and all copies must agree again."""

    def is_done() -> bool:
        world.heal()
        return rotting.look_through() and is_of_one_mind(world)

    if not world.run_until(is_done, _PEACE_STEPS_MAX):
        raise Violation("liveness: a damaged copy of the healed cluster is not mended")


def check_end(world: BrokerWorld, clients: BrokerClients) -> None:
    """Every replica holds everything committed, and everything promised is there."""
    for group in (CATALOG_GROUP, *(group for _, _, group in partitions(world))):
        checks = world.groups[group]
        for replica in _replicas(world, group):
            checks.holds_everything(replica)
        checks.all_proven()
    for machine in world.nodes.values():
        assert machine.broker is not None
        topics = machine.broker.committed_catalog.machine.topics
        for name, topic_id in clients.promised.items():
            if name not in topics or topics[name].topic_id != topic_id:
                raise Violation(f"broker {machine.node} has lost topic {name}")
    check_holdings(world)
    for group in [group for group, offset in clients.offsets.items() if offset]:
        _check_offsets(world, clients, group)


def check_holdings(world: BrokerWorld) -> None:
    """No broker has files of a partition that the catalog does not place there."""
    for machine in world.nodes.values():
        for topic, index, group in partitions(world):
            is_there = str(index) in machine.disk.list(folder_of(topic))
            if is_there != (machine.node in topic.replicas[index]):
                has = "still has" if is_there else "has lost"
                raise Violation(f"broker {machine.node} {has} the files of {group}")


def _check_offsets(world: BrokerWorld, clients: BrokerClients, group: str) -> None:
    found: list[int] = []

    def is_found() -> bool:
        broker = world.chance.choice(world.able()).broker
        assert broker is not None
        clients.fetch_from(broker, group, found.append)
        return bool(found)

    if not world.run_until(is_found, _PEACE_STEPS_MAX):
        raise Violation(f"liveness: group {group} has no coordinator")


def partitions(world: BrokerWorld) -> Iterator[tuple[Topic, int, GroupId]]:
    """Yield every partition in the first broker's copy of the catalog."""
    broker = world.nodes[1].broker
    if broker is None:
        return
    for topic in broker.committed_catalog.machine.topics.values():
        for index in range(topic.partitions):
            yield topic, index, group_of(topic, index)


def is_of_one_mind(world: BrokerWorld) -> bool:
    """Return whether all catalog copies, all replicas and all named leaders agree."""
    world.heal()
    if len(world.able()) < len(world.nodes):
        return False
    applied = {
        machine.broker.committed_catalog.applied
        for machine in world.nodes.values()
        if machine.broker is not None
    }
    groups = [CATALOG_GROUP, *(group for _, _, group in partitions(world))]
    return (
        len(applied) == 1
        and all(_has_agreed(world, group) for group in groups)
        and all(_has_settled(world, topic, index) for topic, index, _ in partitions(world))
        and all(m.broker is not None and m.broker.topics.is_tidy for m in world.nodes.values())
    )


def _has_settled(world: BrokerWorld, topic: Topic, index: int) -> bool:
    """Return whether a partition is at rest, and its voters are exactly its replicas."""
    leader = world.leading(group_of(topic, index))
    if leader is None or index in topic.moves:
        return False
    voters, replicas = leader.raft.voters, sorted(topic.replicas[index])
    holders = [r.raft.node for r in _replicas(world, leader.group)]
    return list(voters.voters) == replicas == sorted(holders) and not voters.learners


def _has_agreed(world: BrokerWorld, group: GroupId) -> bool:
    leader = world.leading(group)
    if leader is None:
        return False
    replicas = list(_replicas(world, group))
    named = {
        machine.broker.leader_of(group)
        for machine in world.nodes.values()
        if machine.broker is not None
    }
    in_sync = {
        machine.broker.leaders.in_sync(group)
        for machine in world.nodes.values()
        if machine.broker is not None
    }
    return (
        named == {(leader.raft.term, leader.raft.node)}
        and in_sync == {leader.raft.voters.voters}
        and len(replicas) == len(leader.raft.voters.members)
        and all(
            replica.raft.commit == replica.raft.end == leader.raft.end
            and replica.log.low >= leader.log.low
            and replica.log.stable == replica.raft.end
            for replica in replicas
        )
    )


def _replicas(world: BrokerWorld, group: GroupId) -> Iterator[Replica]:
    for machine in world.nodes.values():
        if machine.broker is not None and group in machine.broker.replicas.by_group:
            yield machine.broker.replicas.by_group[group]
