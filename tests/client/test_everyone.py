"""Requests to all brokers, while one of them is down."""

import socket
from typing import Any

import pytest

from kafkaesque.client.errors import ConnectionLost, RefusedForNow
from kafkaesque.client.transactions import PREPARED
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.describe_cluster import DescribeClusterRequest
from kafkaesque.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafkaesque.wire.messages.list_prepared import ListPreparedRequest, ListPreparedResponse
from kafkaesque.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kafkaesque.wire.messages.metadata import MetadataRequest
from tests.client.clients import SleepyClock, an_admin
from tests.client.fake_broker import ALL_VERSIONS, HANG_UP, FakeBroker, one_after_another

OFFSETS = "__consumer_offsets"
DESCRIBE_CLUSTER = 60


def groups(*names: str) -> ListGroupsResponse:
    rows = [ListedGroup(group_id=name, protocol_type="consumer") for name in names]
    return ListGroupsResponse(error_code=0, groups=tuple(rows))


TABLE: dict[type[Any], object] = {ListGroupsRequest: groups("a")}


def a_closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_broker_that_is_down_is_not_asked_and_named_as_missing() -> None:
    clock = SleepyClock()
    missing: set[NodeId] = set()
    with FakeBroker(TABLE, others=[(2, a_closed_port())]) as broker:
        broker.fenced = {2}
        with an_admin(broker.bootstrap, clock) as admin:
            assert [one.group for one in admin.groups.list(missing)] == ["a"]
    assert missing == {2}
    assert not clock.slept


def test_a_broker_that_dies_meanwhile_is_missing_and_the_others_answers_count() -> None:
    clock = SleepyClock()
    missing: set[NodeId] = set()
    with (
        FakeBroker(TABLE, others=[(2, a_closed_port())]) as broker,
        an_admin(broker.bootstrap, clock) as admin,
    ):
        assert [one.group for one in admin.groups.list(missing)] == ["a"]
        assert len(broker.requests(ListGroupsRequest)) == 1
    assert missing == {2}
    assert sum(clock.slept) < 1


def test_if_brokers_do_not_report_who_is_up_all_are_asked() -> None:
    versions = {key: row for key, row in ALL_VERSIONS.items() if key != DESCRIBE_CLUSTER}
    with FakeBroker({ListGroupsRequest: groups("b")}) as second:
        first = FakeBroker(TABLE, others=[(2, second.port)], versions=versions)
        with first, an_admin(first.bootstrap) as admin:
            assert [one.group for one in admin.groups.list()] == ["a", "b"]
            assert not first.requests(DescribeClusterRequest)


def test_it_is_reported_when_no_broker_answers() -> None:
    with (
        FakeBroker({ListGroupsRequest: HANG_UP}) as broker,
        an_admin(broker.bootstrap) as admin,
        pytest.raises(ConnectionLost, match="closed the connection"),
    ):
        admin.groups.list()


def test_transactions_are_listed_by_the_brokers_that_are_up() -> None:
    row = TransactionState(transactional_id="t", producer_id=4, transaction_state=PREPARED)
    table: dict[type[Any], object] = {
        ListTransactionsRequest: ListTransactionsResponse(
            error_code=0, unknown_state_filters=(), transaction_states=(row,)
        ),
        ListPreparedRequest: ListPreparedResponse(error_code=0, prepared=()),
    }
    missing: set[NodeId] = set()
    with (
        FakeBroker(table, others=[(2, a_closed_port())]) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        assert admin.transactions.list(missing=missing) == [("t", PREPARED, 4)]
        assert missing == {2}
        missing.clear()
        assert admin.transactions.prepared("t", missing) == {}
        assert missing == {2}


def test_all_groups_are_listed_while_each_of_their_partitions_has_a_leader() -> None:
    with FakeBroker(TABLE, topics={OFFSETS: 2}, others=[(2, a_closed_port())]) as broker:
        broker.fenced = {2}
        with an_admin(broker.bootstrap) as admin:
            assert [one.group for one in admin.groups.list_all()] == ["a"]


def test_groups_that_may_be_missing_are_reported() -> None:
    with FakeBroker(TABLE, topics={OFFSETS: 2}, others=[(2, a_closed_port())]) as broker:
        broker.fenced, broker.leader = {2}, 2
        with (
            an_admin(broker.bootstrap) as admin,
            pytest.raises(RefusedForNow, match="partition 0 of topic __consumer_offsets has no l"),
        ):
            admin.groups.list_all()
        assert len(broker.requests(MetadataRequest)) > 1


def test_groups_are_requested_again_when_their_partition_gets_a_leader() -> None:
    with FakeBroker(topics={OFFSETS: 1}) as broker:
        broker.leader = -1

        def elected(_: object) -> object:
            broker.leader = 1
            return groups("a")

        broker.replies[ListGroupsRequest] = one_after_another(groups(), elected)
        with an_admin(broker.bootstrap) as admin:
            assert [one.group for one in admin.groups.list_all()] == ["a"]


def test_groups_are_requested_again_when_their_leader_came_while_they_were_listed() -> None:
    with FakeBroker(topics={OFFSETS: 1}) as broker:
        broker.leader = -1

        def elected_behind(_: object) -> object:
            broker.leader = 1
            return groups()

        broker.replies[ListGroupsRequest] = one_after_another(elected_behind, groups("a"))
        with an_admin(broker.bootstrap) as admin:
            assert [one.group for one in admin.groups.list_all()] == ["a"]


def test_answers_from_before_the_leader_came_do_not_count_in_a_later_attempt() -> None:
    with FakeBroker(topics={OFFSETS: 1}, others=[(2, a_closed_port())]) as broker:
        broker.leader = 2

        def elected_behind(_: object) -> object:
            broker.leader = 1  # and broker 2, which is asked next, is gone
            return groups()

        broker.replies[ListGroupsRequest] = one_after_another(elected_behind, groups("a"))
        with an_admin(broker.bootstrap) as admin:
            assert [one.group for one in admin.groups.list_all()] == ["a"]
