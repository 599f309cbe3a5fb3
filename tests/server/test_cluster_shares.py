"""Share groups on three brokers: what is acknowledged stays so, wherever its state is kept."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.problems import ProblemKind, problems
from kafkaesque.broker.queues.share_calls import SHARE_TOPIC, index_of
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from kafkaesque.server.requests.session import Session
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from tests.server.share_members import GROUP, TOPIC, Member, acknowledged, acquired, parts
from tests.sim.test_broker_world import (
    broker_of,
    create,
    leader_of,
    ready_world,
    takes,
    wait,
    write,
)

ACCEPT, RELEASE, REJECT = 1, 2, 3
T = TypeVar("T")


class OneOfThree:
    """One broker of a cluster, as a member's requests reach it."""

    def __init__(self, world: BrokerWorld, node: NodeId) -> None:
        self.world = world
        self.broker: Broker = broker_of(world, node)
        self.topic_id = self.broker.catalog.topics[TOPIC].topic_id

    def session(self, connection: int) -> Session:
        return Session(broker=self.broker, host="127.0.0.1", port=9092, connection=connection)

    async def now(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the world run until the answer is there."""
        task = asyncio.ensure_future(work)
        for _ in range(1_000):
            await asyncio.sleep(0)
            if task.done():
                return task.result()
            self.world.run_until(lambda: False, 20)
        raise AssertionError("no answer comes")

    def after_event(self) -> None:
        self.world.run_until(lambda: False, 20)


class Cluster:
    """Three brokers, a topic, and a group that starts with the oldest record."""

    def __init__(self) -> None:
        self.world = world = ready_world()
        assert create(world, 1, TOPIC, 3) is None
        wait(world, lambda: is_of_one_mind(world))
        answers: list[KafkaesqueError | None] = []
        settings = {"share.auto.offset.reset": "earliest"}
        world.ask_broker(
            world.nodes[1], lambda one: one.set_group_settings(GROUP, settings, answers.append)
        )
        wait(world, lambda: answers == [None])
        brokers = [broker_of(world, node) for node in world.nodes]
        wait(world, lambda: all(GROUP in one.catalog.group_settings for one in brokers))
        world.ask_broker(
            world.nodes[1],
            lambda one: one.shares.desk.coordinators.when_ready(lambda error: None),
        )
        wait(world, lambda: all(SHARE_TOPIC in one.catalog.topics for one in brokers))
        wait(world, lambda: is_of_one_mind(world))

    def leader(self, index: int, topic: str = TOPIC) -> NodeId:
        wait(self.world, lambda: takes(self.world, topic, index))
        found = leader_of(self.world, topic, index)
        assert found is not None
        return found.node

    def state_index(self, index: int) -> int:
        catalog = next(one.broker for one in self.world.able() if one.broker is not None).catalog
        place = (catalog.topics[TOPIC].topic_id, index)
        return index_of(place, catalog.topics[SHARE_TOPIC].partitions)

    def state_leader(self, index: int) -> NodeId:
        return self.leader(self.state_index(index), SHARE_TOPIC)

    def apart(self) -> int:
        """Return a partition whose state is kept by another broker."""
        found = [index for index in range(3) if self.leader(index) != self.state_leader(index)]
        assert found, "each partition's state is where the partition is: choose other names"
        return found[0]

    def fill(self, index: int, count: int) -> None:
        for _ in range(count):
            outcomes = write(self.world, TOPIC, index)
            wait(self.world, lambda outcomes=outcomes: bool(outcomes))  # type: ignore[misc]

    def member(self, node: NodeId, name: str = "me", connection: int = 1) -> Member:
        return Member(OneOfThree(self.world, node), name, connection=connection)

    def taken(self, member: Member, index: int, *, until: Callable[[list[int]], bool]) -> list[int]:
        """Let a member fetch until it has enough; it gets nothing twice."""
        got: list[int] = []

        async def run() -> None:
            for _ in range(200):
                answer = await member.fetch(index)
                for first, last, _ in acquired(answer, index):
                    got.extend(range(first, last + 1))
                if until(got):
                    return
                self.world.run_until(lambda: False, 50)

        asyncio.run(run())
        assert len(set(got)) == len(got)
        return sorted(got)

    def settle(self, member: Member, index: int, *acks: tuple[int, int, int]) -> int:
        answer = asyncio.run(member.acknowledge({index: acks}))
        return acknowledged(answer)[index].error_code


def test_a_partition_is_shared_while_its_state_is_kept_by_another_broker() -> None:
    cluster = Cluster()
    index = cluster.apart()
    cluster.fill(index, 6)
    me = cluster.member(cluster.leader(index))
    assert cluster.taken(me, index, until=lambda got: len(got) == 6) == list(range(6))
    assert cluster.settle(me, index, (0, 2, ACCEPT), (3, 3, RELEASE)) == 0
    assert cluster.taken(me, index, until=lambda got: len(got) == 1) == [3]


def test_what_was_settled_does_not_come_again_after_a_change_of_leaders() -> None:
    cluster = Cluster()
    index = cluster.apart()
    cluster.fill(index, 8)
    before = cluster.leader(index)
    me = cluster.member(before)
    assert len(cluster.taken(me, index, until=lambda got: len(got) == 8)) == 8
    acks = [(0, 1, ACCEPT), (3, 3, REJECT), (5, 5, RELEASE), (7, 7, ACCEPT)]
    assert cluster.settle(me, index, *acks) == 0
    cluster.world.nodes[before].kill()
    wait(cluster.world, lambda: takes(cluster.world, TOPIC, index))
    after = cluster.leader(index)
    assert after != before
    you = cluster.member(after, "you")
    got = cluster.taken(you, index, until=lambda got: len(got) == 4)
    assert got == [2, 4, 5, 6]
    assert cluster.settle(you, index, (2, 2, ACCEPT), (4, 6, ACCEPT)) == 0
    cluster.fill(index, 1)
    assert cluster.taken(you, index, until=bool)[0] >= 8


def test_acknowledgements_wait_for_a_new_leader_of_the_state() -> None:
    cluster = Cluster()
    index = cluster.apart()
    cluster.fill(index, 4)
    me = cluster.member(cluster.leader(index))
    assert len(cluster.taken(me, index, until=lambda got: len(got) == 4)) == 4
    cluster.world.nodes[cluster.state_leader(index)].kill()
    assert cluster.settle(me, index, (0, 2, ACCEPT)) == 0
    assert cluster.settle(me, index, (3, 3, RELEASE)) == 0
    assert cluster.taken(me, index, until=bool) == [3]


def test_a_state_without_a_majority_is_reported_by_the_leader_that_waits_for_it() -> None:
    cluster = Cluster()
    world = cluster.world
    assert create(world, 1, "alone", 1, replication=1) is None
    node = cluster.leader(0, "alone")
    outcomes = write(world, "alone", 0)
    wait(world, lambda: bool(outcomes))
    broker = broker_of(world, node)
    partition = broker.partition("alone", 0)
    shares = broker.shares.of((broker.catalog.topics["alone"].topic_id, 0), partition)
    wait(world, lambda: shares.share(GROUP) is not None)
    assert shares.take(GROUP, "me", 1, 1_000).acquired
    wait(world, lambda: shares.waits_ms == 0)
    for other in set(world.nodes) - {node}:
        world.nodes[other].kill()
    shares.settle(GROUP, "me", [AckBatch(0, 0, (Ack.ACCEPT,))], lambda _: None)

    def stuck() -> list[str]:
        return [one.text for one in problems(broker) if one.kind is ProblemKind.SHARES_STUCK]

    assert stuck() == []
    wait(world, lambda: bool(stuck()))
    (text,) = stuck()
    assert text.startswith("share groups of alone-0 wait for the coordinator of their state")
    assert partition.replica.is_serving


def test_who_does_not_lead_names_the_leader_and_writes_nothing() -> None:
    cluster = Cluster()
    index = cluster.apart()
    cluster.fill(index, 3)
    leads = cluster.leader(index)
    other = next(node for node in cluster.world.nodes if node != leads)
    lost = cluster.member(other)

    async def told() -> None:
        answer = await lost.fetch(index)
        found = parts(answer)[index]
        assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert found.current_leader.leader_id == leads
        assert found.current_leader.leader_epoch > 0
        assert [one.node_id for one in answer.node_endpoints] == [leads]
        settled = await lost.acknowledge({index: [(0, 0, ACCEPT)]})
        refused = acknowledged(settled)[index]
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refused.current_leader.leader_id == leads
        assert [one.node_id for one in settled.node_endpoints] == [leads]

    asyncio.run(told())
    cluster.world.run_until(lambda: False, 500)
    assert broker_of(cluster.world, other).shares.partitions == ()
    me = cluster.member(leads)
    assert cluster.taken(me, index, until=lambda got: len(got) == 3) == [0, 1, 2]


def test_a_leader_that_is_cut_off_confirms_nothing_and_its_successor_gives_all_again() -> None:
    cluster = Cluster()
    index = cluster.apart()
    cluster.fill(index, 3)
    before = cluster.leader(index)
    me = cluster.member(before)
    assert len(cluster.taken(me, index, until=lambda got: len(got) == 3)) == 3
    world = cluster.world
    for node in world.nodes:
        if node != before:
            world.network.cut(node, before)
            world.network.cut(before, node)
    answered = asyncio.run(me.acknowledge({index: [(0, 2, ACCEPT)]}))
    assert acknowledged(answered)[index].error_code in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    )
    rest = [node for node in world.nodes if node != before]

    def next_leader() -> NodeId | None:
        for node in rest:
            if broker_of(world, node).partition(TOPIC, index).replica.is_serving:
                return node
        return None

    wait(world, lambda: next_leader() is not None)
    after = next_leader()
    assert after is not None
    you = cluster.member(after, "you")
    assert cluster.taken(you, index, until=lambda got: len(got) == 3) == [0, 1, 2]
