"""What operators request of a cluster: the quorum, moves, elections, removal of brokers."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.server.handlers import (
    alter_partition_reassignments,
    create_partitions,
    describe_cluster,
    describe_configs,
    describe_quorum,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    unregister_broker,
)
from kafkaesque.server.peers.local_channel import LocalChannel
from kafkaesque.server.requests.session import Session
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaesque.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaesque.wire.messages.describe_cluster import DescribeClusterRequest
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkaesque.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartitionRequest,
    QuorumTopicRequest,
)
from kafkaesque.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopic
from kafkaesque.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaesque.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    OngoingPartitionReassignment,
)
from kafkaesque.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.server.memory_broker import at_once
from tests.sim.test_broker_world import broker_of, catalog_leader, create, ready_world, wait

T = TypeVar("T")

BROKER = 4
SET = 0
QUORUM = DescribeQuorumRequest(
    topics=(
        QuorumTopicRequest(
            topic_name="__cluster_metadata",
            partitions=(QuorumPartitionRequest(partition_index=0),),
        ),
    )
)


def session_of(world: BrokerWorld, node: NodeId) -> Session:
    async def forward(target: NodeId, request: Any, version: int) -> Any:
        return await LocalChannel(broker_of(world, target), "", 1).handle(request, version)

    return Session(broker=broker_of(world, node), host="127.0.0.1", port=1, forward=forward)


def answered(world: BrokerWorld, handling: Coroutine[Any, Any, T]) -> T:
    """Let the world run until a handler has its answer."""

    async def run() -> T:
        task = asyncio.ensure_future(handling)
        for _ in range(2_000):
            await asyncio.sleep(0)
            if task.done():
                return task.result()
            world.run_until(lambda: False, 20)
        raise AssertionError("no answer comes")

    return asyncio.run(run())


def with_orders(brokers: int = 3, partitions: int = 3, replication: int = -1) -> BrokerWorld:
    world = ready_world(brokers)
    assert create(world, 1, "orders", partitions, replication) is None
    wait(world, lambda: is_of_one_mind(world))
    return world


def moved(
    world: BrokerWorld,
    node: NodeId,
    replicas: tuple[int, ...] | None,
    partition: int = 0,
    **more: Any,
) -> ErrorCode:
    """Ask a broker to move a partition; return its answer."""
    one = ReassignablePartition(partition_index=partition, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name="orders", partitions=(one,)),), **more
    )
    answer = answered(
        world, alter_partition_reassignments.handle(request, 1, session_of(world, node))
    )
    return ErrorCode(answer.responses[0].partitions[0].error_code)


def under_way(world: BrokerWorld, node: NodeId) -> list[OngoingPartitionReassignment]:
    request = ListPartitionReassignmentsRequest(topics=None)
    answer = at_once(list_partition_reassignments.handle(request, 0, session_of(world, node)))
    return [one for topic in answer.topics for one in topic.partitions]


def quorum(world: BrokerWorld, node: NodeId) -> DescribeQuorumResponse:
    return answered(world, describe_quorum.handle(QUORUM, 2, session_of(world, node)))


def drain(world: BrokerWorld, node: NodeId, name: str, value: str) -> ErrorCode:
    change = AlterableConfig(name="draining", config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    answer = answered(world, incremental_alter_configs.handle(request, 1, session_of(world, node)))
    return ErrorCode(answer.responses[0].error_code)


def test_every_broker_describes_the_same_quorum() -> None:
    world = with_orders()
    answers = [quorum(world, node).topics[0].partitions[0] for node in world.nodes]
    assert {one.leader_id for one in answers} == {catalog_leader(world)}
    for one in answers:
        assert [state.replica_id for state in one.current_voters] == [1, 2, 3]
        assert one.observers == ()
        assert one.high_watermark > 0
        ends = {state.log_end_offset for state in one.current_voters}
        assert ends == {one.high_watermark}


def test_without_a_majority_the_quorum_has_no_leader() -> None:
    world = with_orders()
    leader = catalog_leader(world)
    for node in world.nodes:
        if node != leader:
            world.nodes[node].kill()
    wait(world, lambda: broker_of(world, leader).leader_of(CATALOG_GROUP).node is None)
    assert quorum(world, leader).error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_only_the_catalogs_quorum_can_be_described() -> None:
    world = with_orders()
    partition = QuorumPartitionRequest(partition_index=0)
    topic = QuorumTopicRequest(topic_name="orders", partitions=(partition,))
    request = DescribeQuorumRequest(topics=(topic,))
    answer = answered(world, describe_quorum.handle(request, 2, session_of(world, 1)))
    code = answer.topics[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_can_be_moved_through_any_broker_and_the_move_is_listed() -> None:
    world = with_orders(4, 1, 2)
    now = broker_of(world, 1).catalog.topics["orders"].replicas[0]
    new = next(node for node in world.nodes if node not in now)
    for node in world.nodes:
        assert under_way(world, node) == []
    assert moved(world, new, (new, now[0])) is ErrorCode.NONE
    (listed,) = under_way(world, new)
    assert listed.replicas == (new, now[0], now[1])
    assert listed.adding_replicas == (new,)
    assert listed.removing_replicas == (now[1],)
    wait(world, lambda: not under_way(world, new))
    assert broker_of(world, new).catalog.topics["orders"].replicas[0] == (new, now[0])


def test_only_a_move_in_progress_can_be_cancelled() -> None:
    world = with_orders(4, 1, 2)
    now = broker_of(world, 1).catalog.topics["orders"].replicas[0]
    busy = {*now, catalog_leader(world)}
    new = next(node for node in world.nodes if node not in busy)
    assert moved(world, 1, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    world.nodes[new].kill()
    assert moved(world, now[0], (new, now[0])) is ErrorCode.NONE
    assert moved(world, now[0], None) is ErrorCode.NONE
    wait(world, lambda: not under_way(world, now[0]))
    assert broker_of(world, now[0]).catalog.topics["orders"].replicas[0] == now


def test_impossible_moves_are_refused_partition_by_partition() -> None:
    world = with_orders(3, 1, 2)
    assert moved(world, 1, ()) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert moved(world, 1, (1, 1)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert moved(world, 1, (1, 9)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert moved(world, 1, (1, 2), 7) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refused = moved(world, 1, (1, 2, 3), allow_replication_factor_change=False)
    assert refused is ErrorCode.INVALID_REPLICATION_FACTOR
    partitions = (
        ReassignablePartition(partition_index=0, replicas=(1, 2, 3)),
        ReassignablePartition(partition_index=5, replicas=(1, 2, 3)),
    )
    topic = ReassignableTopic(name="orders", partitions=partitions)
    request = AlterPartitionReassignmentsRequest(topics=(topic,))
    answer = answered(world, alter_partition_reassignments.handle(request, 0, session_of(world, 2)))
    codes = [one.error_code for one in answer.responses[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def elected(world: BrokerWorld, node: NodeId, kind: int = 0, timeout_ms: int = 0) -> ErrorCode:
    topic = ElectLeadersTopic(topic="orders", partitions=(0,))
    request = ElectLeadersRequest(
        election_type=kind, topic_partitions=(topic,), timeout_ms=timeout_ms
    )
    answer = answered(world, elect_leaders.handle(request, 2, session_of(world, node)))
    return ErrorCode(answer.replica_election_results[0].partition_result[0].error_code)


def test_a_preferred_election_says_when_it_is_not_needed_or_not_possible() -> None:
    world = with_orders(3, 1)
    first = broker_of(world, 1).catalog.topics["orders"].replicas[0][0]
    others = [node for node in world.nodes if node != first]
    assert elected(world, others[0]) is ErrorCode.ELECTION_NOT_NEEDED
    assert elected(world, others[0], kind=1) is ErrorCode.ELECTION_NOT_NEEDED
    world.nodes[first].kill()
    topic = broker_of(world, others[0]).catalog.topics["orders"]

    def led() -> bool:
        return all(broker_of(world, n).partition_leader(topic, 0).node in others for n in others)

    wait(world, led)
    for node in others:
        assert elected(world, node) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def test_an_unclean_election_is_refused() -> None:
    world = with_orders(3, 1)
    for node in (1, 2):
        world.nodes[node].kill()
    left = broker_of(world, 3)
    topic = left.catalog.topics["orders"]
    wait(world, lambda: left.partition_leader(topic, 0).node != 3)
    wait(world, lambda: not left.replicas.reachable)
    assert elected(world, 3, kind=1) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert elected(world, 3) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def test_a_broker_is_drained_by_a_setting_that_any_broker_describes() -> None:
    world = with_orders(4, 3)
    assert drain(world, 1, "3", "true") is ErrorCode.NONE
    wait(world, lambda: is_of_one_mind(world))
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="3", configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=(resource,))
    for node in world.nodes:
        answer = at_once(describe_configs.handle(request, 4, session_of(world, node)))
        told = {one.name: one.value for one in answer.results[0].configs}
        assert told["draining"] == "true"
    assert drain(world, 2, "9", "true") is ErrorCode.INVALID_REQUEST
    assert drain(world, 2, "3", "perhaps") is ErrorCode.INVALID_CONFIG
    assert drain(world, 2, "3", "false") is ErrorCode.NONE


def test_a_broker_that_hosts_something_is_not_unregistered() -> None:
    world = with_orders(3, 3)
    request = UnregisterBrokerRequest(broker_id=3)
    answer = answered(world, unregister_broker.handle(request, 0, session_of(world, 1)))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message
    request = UnregisterBrokerRequest(broker_id=9)
    answer = answered(world, unregister_broker.handle(request, 0, session_of(world, 1)))
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_absent_brokers_are_described_on_request() -> None:
    world = with_orders()
    world.nodes[3].kill()
    wait(world, lambda: not broker_of(world, 1).replicas.is_reachable(3))

    def described(*, with_fenced: bool) -> dict[int, bool]:
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=with_fenced
        )
        answer = at_once(describe_cluster.handle(request, 2, session_of(world, 1)))
        return {one.broker_id: one.is_fenced for one in answer.brokers}

    assert described(with_fenced=False) == {1: False, 2: False}
    assert described(with_fenced=True) == {1: False, 2: False, 3: True}


def test_added_partitions_go_to_the_brokers_that_the_client_names() -> None:
    world = with_orders(3, 1)
    assignments = (
        CreatePartitionsAssignment(broker_ids=(3, 1)),
        CreatePartitionsAssignment(broker_ids=(2, 3)),
    )
    topic = CreatePartitionsTopic(name="orders", count=3, assignments=assignments)
    request = CreatePartitionsRequest(topics=(topic,), timeout_ms=1, validate_only=False)
    answer = answered(world, create_partitions.handle(request, 3, session_of(world, 2)))
    assert answer.results[0].error_code == ErrorCode.NONE
    assert broker_of(world, 2).catalog.topics["orders"].replicas[1:] == ((3, 1), (2, 3))
