"""The blocking connection: it answers, or says in one sentence why not."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from kafkaesque.client.address import Address
from kafkaesque.client.blocking_connection import BlockingConnection
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import ConnectionLost, Unreachable
from kafkaesque.clock import SystemClock
from kafkaesque.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.client.fake_broker import ALL_VERSIONS, HANG_UP, FakeBroker

CLOCK = SystemClock()
SOON_MS = 2_500
"""Longer than it takes to connect on any machine."""
GROUPS = ListGroupsResponse(
    error_code=0, groups=(ListedGroup(group_id="g" * 1000, protocol_type="consumer"),) * 500
)


@pytest.fixture
def silent() -> Iterator[Address]:
    """Listens and never sends anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Address(host="127.0.0.1", port=listener.getsockname()[1])


def connect(port: int, within_ms: int = 20_000) -> BlockingConnection:
    address = Address(host="127.0.0.1", port=port)
    return BlockingConnection.open(address, ClientConfig(), CLOCK, CLOCK.monotonic_ms() + within_ms)


def test_an_answer_in_many_packets_is_put_together() -> None:
    with (
        FakeBroker({ListGroupsRequest: GROUPS}) as broker,
        closing(connect(broker.port)) as connection,
    ):
        deadline_ms = CLOCK.monotonic_ms() + 20_000
        said = connection.call(ListGroupsRequest(), ListGroupsResponse, deadline_ms)
        assert said == GROUPS


def test_an_old_broker_is_used_in_its_own_version() -> None:
    versions = {**ALL_VERSIONS, 18: (0, 1), 16: (0, 1)}
    table = {ListGroupsRequest: ListGroupsResponse(error_code=0, groups=())}
    with FakeBroker(table, versions=versions) as broker:
        with closing(connect(broker.port)) as connection:
            deadline_ms = CLOCK.monotonic_ms() + 20_000
            connection.call(ListGroupsRequest(), ListGroupsResponse, deadline_ms)
        assert [version for _, version in broker.asked] == [4, 1, 1]


def test_a_port_without_a_listener_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match=f"cannot reach a broker at 127.0.0.1:{port}: "):
        connect(port)


def test_a_silent_broker_is_given_up_at_the_deadline(silent: Address) -> None:
    with pytest.raises(Unreachable, match="did not answer in time"):
        connect(silent.port, within_ms=SOON_MS)


def test_a_broker_that_hangs_up_is_a_lost_connection() -> None:
    with FakeBroker({ListGroupsRequest: HANG_UP}) as broker:
        connection = connect(broker.port)
        with pytest.raises(ConnectionLost, match=r"before it answered|was lost"):
            connection.call(ListGroupsRequest(), ListGroupsResponse, CLOCK.monotonic_ms() + 20_000)
        assert connection.is_closed
