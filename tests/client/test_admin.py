"""The administrator's client against a fake broker."""

import socket
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaesque.client.errors import NotServed, Refused, RefusedForNow, Unreachable
from kafkaesque.client.groups import GroupListing
from kafkaesque.client.topics import EARLIEST, LATEST, Setting
from kafkaesque.clock import SystemClock
from kafkaesque.errors import InvalidSetting, OutcomeUnknown, TopicExists, UnknownTopic
from kafkaesque.record.build import ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkaesque.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkaesque.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkaesque.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkaesque.wire.messages.find_coordinator import FindCoordinatorRequest
from kafkaesque.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkaesque.wire.messages.metadata import MetadataRequest
from kafkaesque.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkaesque.wire.messages.share_group_describe import API as SHARE_GROUPS
from tests.client.clients import SleepyClock, an_admin
from tests.client.fake_broker import ALL_VERSIONS, HANG_UP, FakeBroker, one_after_another

# librdkafka's assignment of partitions 0 and 2 of `orders`, by hand: version, topics, name, count.
ASSIGNMENT = b"\0\0" + b"\0\0\0\1" + b"\0\6orders" + b"\0\0\0\2" + b"\0\0\0\0\0\0\0\2" + b"\0\0\0\0"


def created(code: int, sentence: str | None = None) -> CreateTopicsResponse:
    row = CreatableTopicResult(name="orders", error_code=code, error_message=sentence)
    return CreateTopicsResponse(topics=(row,))


def found(*rows: tuple[int, int, int]) -> ListOffsetsResponse:
    """Return an answer for `orders`: partition, error code and offset each."""
    partitions = [
        ListOffsetsPartitionResponse(partition_index=p, error_code=code, offset=offset)
        for p, code, offset in rows
    ]
    topic = ListOffsetsTopicResponse(name="orders", partitions=tuple(partitions))
    return ListOffsetsResponse(topics=(topic,))


def produced(code: int) -> ProduceResponse:
    row = PartitionProduceResponse(index=0, error_code=code, base_offset=7)
    return ProduceResponse(
        responses=(TopicProduceResponse(name="orders", partition_responses=(row,)),)
    )


def a_batch(producer: ProducerStamp | None = None) -> bytearray:
    record = Record(offset=0, timestamp_ms=SystemClock().now_ms(), key=None, value=b"v")
    return build_batch([record, replace(record, offset=1)], producer=producer)


def test_topics_are_listed_by_name() -> None:
    with (
        FakeBroker(topics={"b": 1, "a": 3}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        assert [(t.name, len(t.partitions)) for t in admin.topics.list()] == [("a", 3), ("b", 1)]


def test_asking_for_a_topic_never_creates_it() -> None:
    with FakeBroker() as broker, an_admin(broker.bootstrap) as admin:
        with pytest.raises(UnknownTopic, match="topic orders: there is no such topic"):
            admin.topics.describe("orders")
        assert not any(r.allow_auto_topic_creation for r in broker.requests(MetadataRequest))


def test_a_refusal_has_the_brokers_own_message() -> None:
    table = {CreateTopicsRequest: created(ErrorCode.TOPIC_ALREADY_EXISTS, "It is there.")}
    with FakeBroker(table) as broker, an_admin(broker.bootstrap) as admin:
        with pytest.raises(TopicExists, match=r"^topic orders: It is there$"):
            admin.topics.create("orders")
        assert len(broker.requests(CreateTopicsRequest)) == 1


def test_an_unknown_error_code_is_shown_as_a_number() -> None:
    with (
        FakeBroker({CreateTopicsRequest: created(999)}) as broker,
        an_admin(broker.bootstrap) as admin,
        pytest.raises(Refused, match="the broker reports 999"),
    ):
        admin.topics.create("orders")


def test_a_change_that_was_not_made_is_retried_with_growing_pauses() -> None:
    clock = SleepyClock()
    no, yes = created(ErrorCode.NOT_CONTROLLER), created(ErrorCode.NONE)
    table = {CreateTopicsRequest: one_after_another(no, no, no, yes)}
    with FakeBroker(table) as broker, an_admin(broker.bootstrap, clock) as admin:
        admin.topics.create("orders", partitions=3, settings={"retention.ms": "5"})
        asked = broker.requests(CreateTopicsRequest)
        assert len(asked) == 4
        assert asked[-1].topics[0].num_partitions == 3
        assert asked[-1].topics[0].configs[0].value == "5"
    assert [0.025 * 2**n <= pause <= 0.05 * 2**n for n, pause in enumerate(clock.slept)] == [
        True
    ] * 3


def test_retries_end_at_the_deadline() -> None:
    clock = SleepyClock()
    table = {CreateTopicsRequest: created(ErrorCode.NOT_CONTROLLER)}
    with (
        FakeBroker(table) as broker,
        an_admin(broker.bootstrap, clock, deadline_ms=5_000) as admin,
        pytest.raises(RefusedForNow, match="NOT_CONTROLLER"),
    ):
        admin.topics.create("orders")
    assert 3 < sum(clock.slept) < 5


@pytest.mark.parametrize("reply", [HANG_UP, created(ErrorCode.REQUEST_TIMED_OUT)])
def test_a_change_that_may_have_been_made_is_not_retried(reply: object) -> None:
    with FakeBroker({CreateTopicsRequest: reply}) as broker, an_admin(broker.bootstrap) as admin:
        with pytest.raises(OutcomeUnknown, match="may or may not"):
            admin.topics.create("orders")
        assert len(broker.requests(CreateTopicsRequest)) == 1


def test_a_read_is_retried_after_a_lost_connection() -> None:
    table = {ListOffsetsRequest: one_after_another(HANG_UP, found((0, 0, 5)))}
    with (
        FakeBroker(table, topics={"orders": 1}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        assert admin.topics.offsets([("orders", 0)], LATEST) == {("orders", 0): 5}


def test_only_failed_partitions_are_requested_again() -> None:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    table = {
        ListOffsetsRequest: one_after_another(found((0, 0, 5), (1, code, -1)), found((1, 0, 6)))
    }
    with (
        FakeBroker(table, topics={"orders": 2}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        places = [("orders", 0), ("orders", 1)]
        assert admin.topics.offsets(places, EARLIEST) == {places[0]: 5, places[1]: 6}
        asked = broker.requests(ListOffsetsRequest)
        assert [len(request.topics[0].partitions) for request in asked] == [2, 1]


def test_a_broker_that_was_never_reached_is_given_up_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    clock = SleepyClock()
    with (
        an_admin(f"127.0.0.1:{port}", clock) as admin,
        pytest.raises(Unreachable, match=f"127.0.0.1:{port}"),
    ):
        admin.topics.list()
    assert clock.slept == []


def test_one_reachable_bootstrap_address_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        dead = listener.getsockname()[1]
    with FakeBroker() as broker, an_admin(f"127.0.0.1:{dead},{broker.bootstrap}") as admin:
        assert admin.cluster().cluster_id == "fake"


def test_partitions_are_requested_from_their_leader() -> None:
    with FakeBroker({ListOffsetsRequest: found((0, 0, 9))}) as second:
        first = FakeBroker(topics={"orders": 1}, others=[(2, second.port)])
        first.leader = 2
        with first, an_admin(first.bootstrap) as admin:
            assert admin.topics.offsets([("orders", 0)], LATEST) == {("orders", 0): 9}
            assert first.requests(ListOffsetsRequest) == []


def test_deleting_a_topic_names_it_in_every_version() -> None:
    row = DeletableTopicResult(name="orders", error_code=0)
    table = {DeleteTopicsRequest: DeleteTopicsResponse(responses=(row,))}
    for versions in (ALL_VERSIONS, {**ALL_VERSIONS, 20: (1, 3)}):
        with FakeBroker(table, versions=versions) as broker, an_admin(broker.bootstrap) as admin:
            admin.topics.delete("orders")
            (asked,) = broker.requests(DeleteTopicsRequest)
            assert asked.topic_names == ("orders",) or asked.topics[0].name == "orders"


def test_settings_show_whether_they_were_set_for_the_topic() -> None:
    rows = tuple(
        DescribeConfigsResourceResult(
            name=name,
            value="1",
            read_only=False,
            config_source=source,
            is_sensitive=False,
            synonyms=(),
        )
        for name, source in (("segment.ms", 5), ("retention.ms", 1))
    )
    result = DescribeConfigsResult(
        error_code=0, error_message=None, resource_type=2, resource_name="orders", configs=rows
    )
    table = {DescribeConfigsRequest: DescribeConfigsResponse(results=(result,))}
    with FakeBroker(table) as broker, an_admin(broker.bootstrap) as admin:
        assert list(admin.topics.settings("orders")) == [
            Setting(name="retention.ms", value="1", is_default=False, is_sensitive=False),
            Setting(name="segment.ms", value="1", is_default=True, is_sensitive=False),
        ]


def test_a_setting_cannot_be_set_and_deleted_at_once() -> None:
    with FakeBroker() as broker, an_admin(broker.bootstrap) as admin:
        with pytest.raises(InvalidSetting, match="only once"):
            admin.topics.alter("orders", put={"retention.ms": "1"}, drop=["retention.ms"])
        assert broker.asked == []


def test_groups_of_all_brokers_are_listed() -> None:
    def groups(*names: str) -> ListGroupsResponse:
        rows = [
            ListedGroup(group_id=n, protocol_type="consumer", group_state="Empty") for n in names
        ]
        return ListGroupsResponse(error_code=0, groups=tuple(rows))

    with FakeBroker({ListGroupsRequest: groups("b")}) as second:
        table = {ListGroupsRequest: groups("a", "c")}
        with (
            FakeBroker(table, others=[(2, second.port)]) as first,
            an_admin(first.bootstrap) as admin,
        ):
            assert list(admin.groups.list()) == [
                GroupListing(group=name, protocol_type="consumer", state="Empty") for name in "abc"
            ]


def test_a_group_is_described_with_its_members_partitions() -> None:
    member = DescribedGroupMember(
        member_id="m-1",
        client_id="rdkafka",
        client_host="/127.0.0.1",
        member_metadata=b"",
        member_assignment=ASSIGNMENT,
    )
    group = DescribedGroup(
        error_code=0,
        group_id="g",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=(member,),
    )
    table = {DescribeGroupsRequest: DescribeGroupsResponse(groups=(group,))}
    with FakeBroker(table) as broker, an_admin(broker.bootstrap) as admin:
        info = admin.groups.describe("g")
        assert info.state == "Stable"
        assert info.members[0].places == (("orders", 0), ("orders", 2))
        assert info.members[0].host == "127.0.0.1"


def test_a_dead_group_does_not_exist() -> None:
    group = DescribedGroup(
        error_code=0,
        group_id="g",
        group_state="Dead",
        protocol_type="",
        protocol_data="",
        members=(),
    )
    table = {DescribeGroupsRequest: DescribeGroupsResponse(groups=(group,))}
    versions = {key: some for key, some in ALL_VERSIONS.items() if key != SHARE_GROUPS.key}
    with (
        FakeBroker(table, versions=versions) as broker,  # such a broker has no share groups
        an_admin(broker.bootstrap) as admin,
        pytest.raises(Refused, match="there is no such group") as refused,
    ):
        admin.groups.describe("g")
    assert refused.value.code == "GROUP_ID_NOT_FOUND"


@pytest.mark.parametrize("last", [7, 10])
def test_offsets_of_a_group_are_read_in_old_and_new_versions(last: int) -> None:
    old = OffsetFetchResponsePartition(
        partition_index=1, committed_offset=5, metadata="", error_code=0
    )
    new = OffsetFetchResponsePartitions(
        partition_index=1, committed_offset=5, metadata="", error_code=0
    )
    none = OffsetFetchResponsePartitions(
        partition_index=2, committed_offset=-1, metadata="", error_code=0
    )
    topic = OffsetFetchResponseTopics(name="orders", partitions=(new, none))
    reply = OffsetFetchResponse(
        topics=(OffsetFetchResponseTopic(name="orders", partitions=(old,)),),
        groups=(OffsetFetchResponseGroup(group_id="g", topics=(topic,)),),
    )
    versions = {**ALL_VERSIONS, 9: (1, last)}
    with (
        FakeBroker({OffsetFetchRequest: reply}, versions=versions) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        assert admin.groups.offsets("g") == {("orders", 1): 5}


def test_a_group_is_followed_to_another_coordinator() -> None:
    def deleted(code: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=(DeletableGroupResult(group_id="g", error_code=code),))

    replies = one_after_another(deleted(ErrorCode.NOT_COORDINATOR), deleted(0))
    with (
        FakeBroker({DeleteGroupsRequest: replies}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        admin.groups.delete("g")
        assert len(broker.requests(FindCoordinatorRequest)) == 2


def test_offsets_of_a_topic_that_a_member_reads_are_not_deleted() -> None:
    partition = OffsetDeleteResponsePartition(
        partition_index=0, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    )
    reply = OffsetDeleteResponse(
        error_code=0, topics=(OffsetDeleteResponseTopic(name="orders", partitions=(partition,)),)
    )
    with (
        FakeBroker({OffsetDeleteRequest: reply}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        with pytest.raises(Refused, match="a member of the group still reads the topic") as refused:
            admin.groups.delete_offsets("g", [("orders", 0)])
        assert str(refused.value).startswith("group g, partition 0 of topic orders: ")
        assert len(broker.requests(OffsetDeleteRequest)) == 1, "asking again would not help"


def test_an_api_that_the_broker_does_not_serve_is_reported() -> None:
    versions = {key: row for key, row in ALL_VERSIONS.items() if key != 16}
    with (
        FakeBroker(versions=versions) as broker,
        an_admin(broker.bootstrap) as admin,
        pytest.raises(NotServed, match="does not serve ListGroups"),
    ):
        admin.groups.list()


def test_a_truncated_batch_is_left_out() -> None:
    batch = bytes(a_batch())

    def reply(_: Any) -> FetchResponse:
        data = PartitionData(
            partition_index=0,
            error_code=0,
            high_watermark=4,
            log_start_offset=0,
            aborted_transactions=None,
            records=batch + batch[:-3],
        )
        topic = FetchableTopicResponse(topic="orders", partitions=(data,))
        return FetchResponse(responses=(topic,))

    with (
        FakeBroker({FetchRequest: reply}, topics={"orders": 1}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        fetched = admin.batches.fetch("orders", 0, 0)
        assert [bytes(one.data) for one in fetched.batches] == [batch]
        assert fetched.high_watermark == 4


def test_a_plain_batch_with_a_lost_answer_is_not_sent_twice() -> None:
    with (
        FakeBroker({ProduceRequest: HANG_UP}, topics={"orders": 1}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        with pytest.raises(OutcomeUnknown):
            admin.batches.produce("orders", 0, a_batch())
        assert len(broker.requests(ProduceRequest)) == 1


def test_a_batch_with_a_producer_id_is_sent_again() -> None:
    stamp = ProducerStamp(producer_id=9, producer_epoch=0, base_sequence=0)
    lost = produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    table = {ProduceRequest: one_after_another(HANG_UP, lost, produced(0))}
    with (
        FakeBroker(table, topics={"orders": 1}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        assert admin.batches.produce("orders", 0, a_batch(stamp)) == 7
        assert len(broker.requests(ProduceRequest)) == 3
