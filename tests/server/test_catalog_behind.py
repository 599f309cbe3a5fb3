"""The answers of a broker whose copy of the catalog lags, and of partitions without a leader."""

from msgspec.structs import replace

from kafkaesque.broker.cluster.catalog_freshness import Confirming
from kafkaesque.broker.cluster.serving_waits import VACANT_TICKS_MAX
from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC
from kafkaesque.broker.partition.partition_errors import NotHere
from kafkaesque.machines.catalog.catalog_commands import AnswerTo, CatalogCommand
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.server.answers.partition_facts import slots_of
from kafkaesque.server.handlers import (
    describe_topic_partitions,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
)
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from tests.server.memory_broker import MemoryBroker, at_once
from tests.server.test_cluster_admin import answered, session_of
from tests.sim.test_broker_world import broker_of, catalog_leader, create, ready_world, wait
from tests.sim.test_cluster_acks import cut_off

LATEST = -1


def a_cluster(*topics: str) -> BrokerWorld:
    world = ready_world()
    for name in topics:
        assert create(world, 1, name, partitions=1) is None
    wait(world, lambda: is_of_one_mind(world))
    return world


def fall_behind(world: BrokerWorld, node: NodeId) -> None:
    """Create a topic while a broker is cut off, and reconnect the broker."""
    other = next(one for one in world.nodes if one != node)
    cut_off(world, node)
    wait(world, lambda: not broker_of(world, other).replicas.is_reachable(node))
    wait(world, lambda: world.leading(CATALOG_GROUP) is not None)
    assert create(world, other, "new", partitions=1) is None
    world.network.heal()
    assert "new" not in broker_of(world, node).catalog.topics


def a_follower(world: BrokerWorld) -> NodeId:
    return next(node for node in world.nodes if node != catalog_leader(world))


def described(world: BrokerWorld, node: NodeId, name: str) -> MetadataResponseTopic:
    """Send a consumer's request, which creates no topics."""
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False
    )
    return answered(world, metadata.handle(request, 12, session_of(world, node))).topics[0]


# ── uncommitted topics ───────────────────────────────────────────────────────────────────────


def test_an_uncommitted_topic_has_no_id() -> None:
    memory = MemoryBroker()
    memory.broker.create_topic("orders", 1, {}, lambda _: None)
    named = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
    (topic,) = at_once(metadata.handle(named, 12, memory.session)).topics
    assert (topic.error_code, topic.topic_id) == (ErrorCode.LEADER_NOT_AVAILABLE, NO_UUID)
    memory.settle()
    (topic,) = at_once(metadata.handle(named, 12, memory.session)).topics
    assert topic.topic_id == memory.broker.catalog.topics["orders"].topic_id


# ── topics that are not known yet ────────────────────────────────────────────────────────────


def test_a_topic_that_a_lagging_broker_does_not_know_is_not_reported_as_missing() -> None:
    world = a_cluster()
    behind = a_follower(world)
    fall_behind(world, behind)
    found = described(world, behind, "new")
    assert (found.error_code, len(found.partitions)) == (ErrorCode.NONE, 1)


def test_a_missing_topic_is_reported_as_missing_by_any_broker() -> None:
    world = a_cluster()
    for node in world.nodes:
        found = described(world, node, "never")
        assert found.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_without_a_leader_of_the_catalog_no_topic_is_reported_as_missing() -> None:
    world = a_cluster()
    cut_off(world, 1)
    wait(world, lambda: broker_of(world, 1).leader_of(CATALOG_GROUP).node is None)
    assert described(world, 1, "new").error_code is ErrorCode.LEADER_NOT_AVAILABLE
    by_id = MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=b"i" * 16),))
    answer = answered(world, metadata.handle(by_id, 12, session_of(world, 1)))
    assert answer.topics[0].error_code is ErrorCode.LEADER_NOT_AVAILABLE


def test_many_concurrent_requests_cost_the_leader_two_queries() -> None:
    world = a_cluster()
    asked: list[CatalogCommand] = []
    broker = broker_of(world, a_follower(world))

    def ask(command: CatalogCommand, to: AnswerTo) -> None:
        asked.append(command)
        broker.ask(command, to)

    confirming = Confirming(ask, broker.committed_catalog, lambda: False)
    told: list[bool] = []
    for _ in range(100):
        confirming.when_current(told.append)
    wait(world, lambda: len(told) == 100)
    assert all(told)
    assert len(asked) == 2, "one for the first, and one for all that came meanwhile"


def test_topics_are_described_and_looked_up_after_the_same_query() -> None:
    world = a_cluster()
    behind = a_follower(world)
    fall_behind(world, behind)
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name="new"),), response_partition_limit=10
    )
    answer = answered(
        world, describe_topic_partitions.handle(request, 0, session_of(world, behind))
    )
    assert answer.topics[0].error_code is ErrorCode.NONE


def test_an_offset_request_for_a_topic_not_known_yet_waits_for_its_leader() -> None:
    world = a_cluster()
    cut_off(world, 1)
    wait(world, lambda: broker_of(world, 1).leader_of(CATALOG_GROUP).node is None)
    partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name="new", partitions=(partition,)),)
    )
    answer = answered(world, list_offsets.handle(request, 7, session_of(world, 1)))
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


# ── positions of groups ──────────────────────────────────────────────────────────────────────


def a_coordinator(world: BrokerWorld) -> tuple[str, NodeId]:
    """Create the topic of groups; return a group and its coordinator, not the catalog's leader."""
    assert create(world, 1, OFFSETS_TOPIC, partitions=3) is None
    wait(world, lambda: is_of_one_mind(world))
    for group in map(str, range(100)):
        node = broker_of(world, 1).coordinator_of(group)
        if node is not None and node != catalog_leader(world):
            return group, node
    raise AssertionError("one broker coordinates all groups")


def separate(world: BrokerWorld, node: NodeId) -> None:
    """Cut a broker off from the catalog's leader only, and create a topic there."""
    leader = catalog_leader(world)
    world.network.cut(node, leader)
    world.network.cut(leader, node)
    assert create(world, leader, "new", partitions=1) is None
    assert "new" not in broker_of(world, node).catalog.topics


def fetched(world: BrokerWorld, group: str, node: NodeId) -> OffsetFetchResponseGroup:
    topics = (OffsetFetchRequestTopics(name="new", partition_indexes=(0,)),)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),))
    return answered(world, offset_fetch.handle(request, 9, session_of(world, node))).groups[0]


def committed(world: BrokerWorld, group: str, node: NodeId) -> int:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=7, committed_metadata=None
    )
    request = OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=(OffsetCommitRequestTopic(name="new", partitions=(partition,)),),
    )
    answer = answered(world, offset_commit.handle(request, 9, session_of(world, node)))
    return answer.topics[0].partitions[0].error_code


def test_while_the_catalog_lags_a_group_is_not_answered_that_it_has_no_position() -> None:
    world = a_cluster()
    group, node = a_coordinator(world)
    separate(world, node)
    assert fetched(world, group, node).error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert committed(world, group, node) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_group_commits_and_finds_its_position_as_soon_as_the_catalog_can_be_queried() -> None:
    world = a_cluster()
    group, node = a_coordinator(world)
    separate(world, node)
    world.network.heal()
    assert committed(world, group, node) is ErrorCode.NONE
    found = fetched(world, group, node)
    assert found.topics[0].partitions[0].committed_offset == 7


def test_a_group_without_a_position_in_a_missing_topic_is_answered_so() -> None:
    world = a_cluster()
    group, node = a_coordinator(world)
    found = fetched(world, group, node)
    assert (found.error_code, found.topics[0].partitions[0].committed_offset) == (0, -1)


# ── partitions without a leader ──────────────────────────────────────────────────────────────


def leader_told(topic: MetadataResponseTopic) -> tuple[int, NodeId]:
    return topic.partitions[0].error_code, topic.partitions[0].leader_id


def leader_killed(world: BrokerWorld) -> tuple[NodeId, NodeId]:
    """Kill the leader of `orders`; return it, and another broker, which suspects it."""
    dead = broker_of(world, 1).partition_leader(broker_of(world, 1).topics.topic("orders"), 0).node
    assert dead is not None
    world.nodes[dead].kill()
    asked = next(node for node in world.nodes if node != dead)
    world.ask_broker(world.nodes[asked], lambda broker: broker.suspect(dead))
    return dead, asked


def test_a_metadata_request_during_an_election_gets_the_new_leader() -> None:
    world = a_cluster("orders")
    dead, asked = leader_killed(world)
    code, leader = leader_told(described(world, asked, "orders"))
    assert code is ErrorCode.NONE
    assert leader not in (dead, -1)


def test_a_partition_without_a_majority_is_waited_for_once_and_not_each_time() -> None:
    world = ready_world(5, 5)
    assert create(world, 1, "orders", partitions=1, replication=3) is None
    wait(world, lambda: is_of_one_mind(world))
    holders = broker_of(world, 1).topics.topic("orders").replicas[0]
    for node in holders[:2]:
        world.nodes[node].kill()
    asked = next(node for node in world.nodes if node not in holders)
    wait(world, lambda: not broker_of(world, asked).replicas.is_reachable(holders[0]))
    wait(world, lambda: world.leading(CATALOG_GROUP) is not None)
    start = world.clock.time
    assert leader_told(described(world, asked, "orders")) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    waited = world.clock.time - start
    assert 0 < waited <= 2 * VACANT_TICKS_MAX * world.settings.tick_ms
    start = world.clock.time
    assert leader_told(described(world, asked, "orders")) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert world.clock.time == start, "it is known by now that this takes long"


def test_a_request_for_all_topics_does_not_wait_for_leaders() -> None:
    world = a_cluster("orders")
    _, asked = leader_killed(world)
    answer = at_once(metadata.handle(MetadataRequest(topics=None), 12, session_of(world, asked)))
    assert leader_told(answer.topics[0]) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


# ── lists of all topics ──────────────────────────────────────────────────────────────────────


def listed(world: BrokerWorld, node: NodeId) -> dict[str, tuple[int, bytes, int]]:
    """Request all topics; return the code, the id and the number of partitions of each."""
    request = MetadataRequest(topics=None)
    answer = at_once(metadata.handle(request, 12, session_of(world, node)))
    assert all(one.name is not None for one in answer.topics)
    return {
        str(one.name): (one.error_code, one.topic_id, len(one.partitions)) for one in answer.topics
    }


def test_a_list_of_topics_leaves_out_uncommitted_ones() -> None:
    world = a_cluster("orders")
    leader = catalog_leader(world)
    broker = broker_of(world, leader)
    broker.create_topic("new", 2, {}, lambda _: None)
    assert "new" in broker.catalog.topics
    assert list(listed(world, leader)) == ["orders"]
    wait(world, lambda: "new" in listed(world, leader))
    code, _, partitions = listed(world, leader)["new"]
    assert (code, partitions) == (ErrorCode.NONE, 2)


def test_a_topic_is_listed_until_its_deletion_is_committed() -> None:
    world = a_cluster("orders")
    leader = catalog_leader(world)
    before = listed(world, leader)
    broker = broker_of(world, leader)
    broker.delete_topic("orders", lambda _: None)
    assert "orders" not in broker.catalog.topics
    assert listed(world, leader) == before
    wait(world, lambda: not listed(world, leader))


def test_a_recreated_topic_is_listed_as_the_old_one_until_the_new_one_is_committed() -> None:
    world = a_cluster("orders")
    leader = catalog_leader(world)
    before = listed(world, leader)
    broker = broker_of(world, leader)
    broker.delete_topic("orders", lambda _: None)
    broker.create_topic("orders", 2, {}, lambda _: None)
    assert listed(world, leader) == before
    wait(world, lambda: listed(world, leader).get("orders", before["orders"]) != before["orders"])
    code, _, partitions = listed(world, leader)["orders"]
    assert (code, partitions) == (ErrorCode.NONE, 2)


def test_a_follower_lists_topics_with_all_partitions_while_they_are_created_and_deleted() -> None:
    world = a_cluster("orders")
    for round_ in range(5):
        assert create(world, 1, f"topic-{round_}", partitions=2) is None
        for node in world.nodes:
            for name, (code, _, partitions) in listed(world, node).items():
                assert (code, partitions) == (ErrorCode.NONE, 1 if name == "orders" else 2)


def test_a_committed_topic_that_is_not_open_yet_is_listed_with_its_partitions() -> None:
    world = a_cluster("orders")
    broker = broker_of(world, 1)
    topic = broker.committed_catalog.machine.topics["orders"]
    (slot,) = slots_of(broker, replace(topic, topic_id=b"another one, new"))
    assert isinstance(slot, NotHere)
    assert list(slots_of(broker, topic)) == list(broker.topics.slots("orders"))
