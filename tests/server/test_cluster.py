"""All brokers of a cluster give clients the same, correct answers."""

import asyncio
from dataclasses import replace
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.presence import is_cut_off
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.machines.transactions.transaction_commands import Producer
from kafkaesque.server.edge.controllers import LOOKS_APART, Controllers
from kafkaesque.server.handlers import (
    create_topics,
    describe_cluster,
    describe_producers,
    describe_topic_partitions,
    find_coordinator,
    list_offsets,
    metadata,
)
from kafkaesque.server.requests.session import Session
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkaesque.wire.messages.describe_cluster import DescribeClusterRequest
from kafkaesque.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafkaesque.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkaesque.wire.messages.find_coordinator import FindCoordinatorRequest
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.broker.transactional import transactional
from tests.server.memory_broker import at_once
from tests.sim.test_broker_world import broker_of, create, ready_world, wait


def session_of(world: BrokerWorld, node: NodeId) -> Session:
    return Session(broker=broker_of(world, node), host="127.0.0.1", port=1)


def asked(world: BrokerWorld, node: NodeId) -> MetadataResponse:
    return at_once(metadata.handle(MetadataRequest(topics=None), 12, session_of(world, node)))


def with_orders(partitions: int = 3) -> BrokerWorld:
    world = ready_world(racks=3)
    assert create(world, 1, "orders", partitions) is None
    wait(world, lambda: is_of_one_mind(world))
    return world


def test_all_brokers_give_the_same_address_of_each_broker() -> None:
    world = with_orders()
    for node in world.nodes:
        found = {one.node_id: (one.host, one.port) for one in asked(world, node).brokers}
        assert found == {o: (f"broker-{o}", 9092) for o in world.nodes}
    answer = at_once(
        describe_cluster.handle(
            DescribeClusterRequest(include_cluster_authorized_operations=False),
            0,
            session_of(world, 2),
        )
    )
    assert [one.broker_id for one in answer.brokers] == [1, 2, 3]
    assert {one.rack for one in answer.brokers} == {"rack-0", "rack-1", "rack-2"}


def test_every_broker_names_the_same_leaders_replicas_and_controller() -> None:
    world = with_orders()
    answers = [asked(world, node) for node in world.nodes]
    assert len({answer.controller_id for answer in answers}) == 1
    assert len({answer.topics for answer in answers}) == 1
    partitions = answers[0].topics[0].partitions
    assert sorted(one.leader_id for one in partitions) == [1, 2, 3]
    assert all(one.replica_nodes[0] == one.leader_id for one in partitions)
    assert all(one.error_code is ErrorCode.NONE for one in partitions)
    pages = at_once(
        describe_topic_partitions.handle(
            DescribeTopicPartitionsRequest(topics=(), response_partition_limit=10),
            0,
            session_of(world, 3),
        )
    )
    assert [one.leader_id for one in pages.topics[0].partitions] == [
        one.leader_id for one in partitions
    ]


def test_a_partition_whose_broker_is_down_gets_a_new_leader_that_all_name() -> None:
    world = with_orders(partitions=1)
    (partition,) = asked(world, 1).topics[0].partitions
    world.nodes[partition.leader_id].kill()
    left = [node for node in world.nodes if node != partition.leader_id]

    def leaders() -> set[NodeId]:
        return {asked(world, node).topics[0].partitions[0].leader_id for node in left}

    wait(world, lambda: len(leaders()) == 1 and leaders() <= set(left))


def test_the_coordinator_is_the_leader_of_the_groups_partition() -> None:
    world = ready_world()
    world.ask_broker(world.nodes[1], lambda broker: broker.coordinators.when_ready(lambda _: None))
    wait(world, lambda: all(broker_of(world, n).coordinators.is_open for n in world.nodes))
    wait(world, lambda: is_of_one_mind(world))
    request = FindCoordinatorRequest(coordinator_keys=("readers", "writers"))
    named = [
        [
            one.node_id
            for one in asyncio.run(
                find_coordinator.handle(request, 4, session_of(world, node))
            ).coordinators
        ]
        for node in world.nodes
    ]
    assert named[0] == named[1] == named[2]
    for node, key in zip(named[0], request.coordinator_keys, strict=True):
        assert node == broker_of(world, 1).coordinator_of(key)


def test_replicas_can_be_assigned_by_hand_to_live_brokers() -> None:
    world = ready_world()
    wait(world, lambda: len(broker_of(world, 2).catalog.brokers) == 3)

    def refused(brokers: tuple[int, ...]) -> ErrorCode:
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=brokers)
        topic = CreatableTopic(
            name="orders",
            num_partitions=-1,
            replication_factor=-1,
            assignments=(assignment,),
            configs=(),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=1, validate_only=True)
        answer = at_once(create_topics.handle(request, 7, session_of(world, 2)))
        return ErrorCode(answer.topics[0].error_code)

    assert refused((3, 1)) is ErrorCode.NONE
    assert refused((3, 4)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refused((3, 3)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_client_that_looks_for_a_leader_at_an_isolated_broker_is_disconnected() -> None:
    world = with_orders(partitions=1)
    (partition,) = asked(world, 1).topics[0].partitions
    lonely, others = partition.leader_id, [n for n in world.nodes if n != partition.leader_id]
    dismissed: list[NodeId] = []

    def ask(node: NodeId, names: list[str] | None) -> MetadataResponse:
        session = replace(session_of(world, node), dismiss=lambda: dismissed.append(node))
        topics = None if names is None else tuple(MetadataRequestTopic(name=n) for n in names)
        return at_once(metadata.handle(MetadataRequest(topics=topics), 12, session))

    for node in world.nodes:
        ask(node, ["orders"])
    assert dismissed == []
    for other in others:
        world.network.cut(lonely, other)
        world.network.cut(other, lonely)
    wait(world, lambda: ask(others[0], None).topics[0].partitions[0].leader_id in others)
    wait(world, lambda: is_cut_off(broker_of(world, lonely)))
    wait(world, lambda: ask(lonely, None).topics[0].partitions[0].leader_id == -1)
    assert ask(lonely, []).topics == ()
    assert dismissed == []  # a client that only looks around may stay
    answer = ask(lonely, ["orders"])
    assert answer.topics[0].partitions[0].error_code is ErrorCode.LEADER_NOT_AVAILABLE
    assert dismissed == [lonely]


def test_every_replica_describes_its_producers() -> None:
    world = with_orders(partitions=1)
    (partition,) = asked(world, 1).topics[0].partitions
    batch = transactional(0, b"x", producer=Producer(7, 1))

    def write(broker: Broker) -> None:
        broker.partition("orders", 0).append(memoryview(batch), lambda _: None, verified=1)

    world.ask_broker(world.nodes[partition.leader_id], write)
    request = DescribeProducersRequest(
        topics=(TopicRequest(name="orders", partition_indexes=(0, 0)),)
    )

    def found(node: NodeId) -> list[tuple[int, int, int, int]]:
        answer = at_once(describe_producers.handle(request, 0, session_of(world, node)))
        (told,) = answer.topics[0].partitions
        assert told.error_code is ErrorCode.NONE
        return [
            (one.producer_id, one.producer_epoch, one.last_sequence, one.current_txn_start_offset)
            for one in told.active_producers
        ]

    wait(world, lambda: all(found(node) == [(7, 1, 0, 0)] for node in world.nodes))


def test_an_offset_request_to_a_follower_is_redirected_to_the_leader() -> None:
    world = with_orders(partitions=1)
    (partition,) = asked(world, 1).topics[0].partitions
    follower = next(node for node in world.nodes if node != partition.leader_id)
    one = ListOffsetsPartition(partition_index=0, timestamp=-2)
    request = ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name="orders", partitions=(one,)),)
    )
    dismissed: list[NodeId] = []
    for node in (partition.leader_id, follower):
        session = replace(session_of(world, node), dismiss=partial(dismissed.append, node))
        answer = at_once(list_offsets.handle(request, 7, session))
        code = answer.topics[0].partitions[0].error_code
        is_leader = node == partition.leader_id
        assert code == (ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert dismissed == [follower]


def test_a_controller_is_named_even_when_the_catalog_has_no_leader() -> None:
    world = with_orders()
    broker = broker_of(world, 3)
    assert asked(world, 3).controller_id == broker.leader_of(CATALOG_GROUP).node
    broker.leaders.forget(CATALOG_GROUP)
    assert asked(world, 3).controller_id == 3


def test_a_lost_broker_counts_once_if_it_has_led_the_catalog() -> None:
    world = with_orders()
    leader = broker_of(world, 1).leader_of(CATALOG_GROUP).node
    assert leader is not None
    survivor, other = (node for node in (1, 2, 3) if node != leader)
    broker = broker_of(world, survivor)
    controllers = Controllers(broker)
    controllers.look()
    broker.replicas.suspect(other)
    controllers.look()
    assert controllers.losses == 0, "it never led the catalog"
    broker.replicas.suspect(leader)
    for _ in range(2):
        controllers.look()
    assert controllers.losses == 1


def test_brokers_without_a_controller_close_connections_one_after_the_other() -> None:
    world = with_orders()
    leader = broker_of(world, 1).leader_of(CATALOG_GROUP).node
    assert leader is not None
    survivors = [node for node in (1, 2, 3) if node != leader]
    left = [Controllers(broker_of(world, node)) for node in survivors]
    for one in left:
        one.look()
    for node in survivors:
        broker_of(world, node).replicas.suspect(leader)
    dues = []
    for _ in range(1 + LOOKS_APART):
        for one in left:
            one.look()
        dues.append([one.due for one in left])
    assert [one.losses for one in left] == [1, 1], "both know at once"
    assert dues == [[1, 0]] * LOOKS_APART + [[1, 1]]
