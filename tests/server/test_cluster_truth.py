"""What a cluster's brokers answer when some of them are gone, and where they redirect clients."""

import asyncio

import pytest

from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.server.handlers import (
    describe_topic_partitions,
    fetch,
    init_producer_id,
    metadata,
    produce,
)
from kafkaesque.server.requests.session import Session
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkaesque.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkaesque.wire.messages.init_producer_id import InitProducerIdRequest
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.broker.nodes import a_batch
from tests.server.memory_broker import at_once
from tests.sim.test_broker_world import broker_of, create, ready_world, wait, write
from tests.sim.test_cluster_acks import cut_off


def a_cluster() -> BrokerWorld:
    """Three brokers in three racks, and one record on a partition that all of them host."""
    world = ready_world(racks=3)
    assert create(world, 1, "orders", partitions=1) is None
    wait(world, lambda: is_of_one_mind(world))
    write(world, "orders")
    wait(world, lambda: all(copy(world, node) == 1 for node in world.nodes))
    wait(world, lambda: is_of_one_mind(world))
    return world


def copy(world: BrokerWorld, node: NodeId) -> int:
    return broker_of(world, node).partition("orders", 0).high_watermark


def session_of(world: BrokerWorld, node: NodeId) -> Session:
    return Session(broker=broker_of(world, node), host="127.0.0.1", port=1)


def told(world: BrokerWorld, node: NodeId) -> MetadataResponse:
    return at_once(metadata.handle(MetadataRequest(topics=None), 12, session_of(world, node)))


def orders(world: BrokerWorld, node: NodeId) -> MetadataResponsePartition:
    return told(world, node).topics[0].partitions[0]


def leader(world: BrokerWorld) -> NodeId:
    return orders(world, 1).leader_id


def others(world: BrokerWorld, node: NodeId) -> list[NodeId]:
    return [one for one in world.nodes if one != node]


def fetched(world: BrokerWorld, node: NodeId, rack: str, offset: int = 0) -> FetchResponse:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        topics=(FetchTopic(topic="orders", partitions=(partition,)),),
        rack_id=rack,
    )
    return at_once(fetch.handle(request, 12, session_of(world, node)))


def only(answer: FetchResponse) -> PartitionData:
    return answer.responses[0].partitions[0]


def rack_of(node: NodeId) -> str:
    return f"rack-{node % 3}"


@pytest.mark.requirement("REP-6")
def test_a_dead_broker_is_offline_and_out_of_sync_but_still_listed() -> None:
    world = a_cluster()
    dead = next(node for node in world.nodes if node != leader(world))
    world.nodes[dead].kill()
    left = others(world, dead)

    def is_told(node: NodeId) -> bool:
        partition = orders(world, node)
        return (
            sorted(partition.isr_nodes) == left
            and partition.offline_replicas == (dead,)
            and sorted(partition.replica_nodes) == [1, 2, 3]
            and [one.node_id for one in told(world, node).brokers] == [1, 2, 3]
        )

    wait(world, lambda: all(is_told(node) for node in left))
    request = DescribeTopicPartitionsRequest(topics=(), response_partition_limit=10)
    pages = at_once(describe_topic_partitions.handle(request, 0, session_of(world, left[0])))
    described, partition = pages.topics[0].partitions[0], orders(world, left[0])
    assert described.isr_nodes == partition.isr_nodes
    assert described.offline_replicas == partition.offline_replicas


def test_a_dead_broker_is_not_named_as_the_leader() -> None:
    world = a_cluster()
    dead = leader(world)
    world.nodes[dead].kill()
    asked = others(world, dead)[0]
    world.ask_broker(world.nodes[asked], lambda broker: broker.suspect(dead))
    partition = orders(world, asked)
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == (dead,)


def test_an_isolated_broker_still_lists_the_whole_cluster() -> None:
    world = a_cluster()
    alone = leader(world)
    cut_off(world, alone)
    wait(world, lambda: orders(world, alone).leader_id == -1)
    answer = told(world, alone)
    assert [one.node_id for one in answer.brokers] == [1, 2, 3]
    assert answer.topics[0].partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_a_refused_producer_gets_the_new_leader_and_its_address() -> None:
    world = a_cluster()
    leads = leader(world)
    asked = others(world, leads)[0]
    data = PartitionProduceData(index=0, records=bytes(a_batch(b"x")))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=(TopicProduceData(name="orders", partition_data=(data,)),),
    )
    answer = at_once(produce.handle(request, 10, session_of(world, asked)))
    assert answer is not None
    (refused,) = answer.responses[0].partition_responses
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.current_leader.leader_id == leads
    assert refused.current_leader.leader_epoch == orders(world, asked).leader_epoch
    assert [(one.node_id, one.host) for one in answer.node_endpoints] == [
        (leads, f"broker-{leads}")
    ]


def test_b30_a_send_committed_after_its_leader_was_deposed_is_not_called_unwritten() -> None:
    world = a_cluster()
    leads = leader(world)
    left = others(world, leads)
    data = PartitionProduceData(index=0, records=bytes(a_batch(b"y")))
    topic = TopicProduceData(name="orders", partition_data=(data,))
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=(topic,))

    async def send() -> ProduceResponse | None:
        async with asyncio.TaskGroup() as group:
            work = produce.handle(request, 10, session_of(world, leads))
            asked = group.create_task(work)
            await asyncio.sleep(0)
            for node in left:
                world.network.cut(
                    node, leads
                )  # they get the batch, and the leader never learns of that
            wait(world, lambda: all(copy(world, node) == 2 for node in left))
        return asked.result()

    answer = asyncio.run(send())
    assert answer is not None
    (told_so,) = answer.responses[0].partition_responses
    assert told_so.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_consumer_without_a_rack_is_sent_to_the_leader() -> None:
    world = a_cluster()
    leads = leader(world)
    answer = fetched(world, others(world, leads)[0], rack="")
    assert only(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(answer).current_leader.leader_id == leads
    assert [one.node_id for one in answer.node_endpoints] == [leads]
    assert only(fetched(world, leads, rack="")).records


def test_the_leader_sends_a_consumer_to_the_replica_in_its_rack_which_serves_it() -> None:
    world = a_cluster()
    leads = leader(world)
    near = others(world, leads)[0]
    sent = only(fetched(world, leads, rack_of(near)))
    assert (sent.error_code, sent.preferred_read_replica) == (ErrorCode.NONE, near)
    assert not sent.records
    served = only(fetched(world, near, rack_of(near)))
    assert served.error_code == ErrorCode.NONE
    assert served.high_watermark == 1
    assert bytes(served.records or b"") == bytes(only(fetched(world, leads, "")).records or b"")


def test_a_consumer_in_the_leaders_rack_or_in_one_without_a_replica_stays() -> None:
    world = a_cluster()
    leads = leader(world)
    for rack in (rack_of(leads), "rack-9"):
        answer = only(fetched(world, leads, rack))
        assert answer.preferred_read_replica == -1
        assert answer.records


def test_a_follower_in_another_rack_serves_no_consumer() -> None:
    world = a_cluster()
    leads = leader(world)
    near, far = others(world, leads)
    answer = only(fetched(world, near, rack_of(far)))
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_no_consumer_is_sent_to_a_replica_that_is_out_of_sync() -> None:
    world = a_cluster()
    leads = leader(world)
    near = others(world, leads)[0]
    world.ask_broker(world.nodes[leads], lambda broker: broker.suspect(near))
    answer = only(fetched(world, leads, rack_of(near)))
    assert answer.preferred_read_replica == -1
    assert answer.records


def test_a_follower_refuses_old_and_unknown_terms() -> None:
    world = a_cluster()
    near = others(world, leader(world))[0]
    term = orders(world, near).leader_epoch

    def code(known: int) -> int:
        partition = FetchPartition(
            partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=known
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            topics=(FetchTopic(topic="orders", partitions=(partition,)),),
            rack_id=rack_of(near),
        )
        return only(at_once(fetch.handle(request, 12, session_of(world, near)))).error_code

    assert code(term) == ErrorCode.NONE
    assert code(term - 1) == ErrorCode.FENCED_LEADER_EPOCH
    assert code(term + 1) == ErrorCode.UNKNOWN_LEADER_EPOCH


# ── without a leader of the catalog ──────────────────────────────────────────────────────────


def an_isolated_broker() -> Session:
    """A broker that is cut off from the others, and knows it."""
    world = a_cluster()
    cut_off(world, 1)
    wait(world, lambda: broker_of(world, 1).leader_of(CATALOG_GROUP).node is None)
    return session_of(world, 1)


def test_a_topic_that_cannot_be_created_now_gets_a_retriable_error() -> None:
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name="new"),), allow_auto_topic_creation=True
    )
    answer = asyncio.run(metadata.handle(request, 12, an_isolated_broker()))
    assert answer.topics[0].error_code is ErrorCode.LEADER_NOT_AVAILABLE


def test_a_request_for_a_producer_id_gets_a_retriable_error() -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
    answer = asyncio.run(init_producer_id.handle(request, 4, an_isolated_broker()))
    assert answer.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
