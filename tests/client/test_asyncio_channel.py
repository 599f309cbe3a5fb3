"""The channel over a socket, for programs with an event loop."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import wraps

import pytest

from kafkaesque.client.address import Address
from kafkaesque.client.asyncio_channel import SocketChannel
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import ConnectionLost, Unreachable
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest
from kafkaesque.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.client.fake_broker import HANG_UP, FakeBroker, one_after_another

NO_GROUPS = ListGroupsResponse(error_code=0, groups=())
ALL = MetadataRequest(topics=None)


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run a test in a new event loop."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def a_channel(port: int, **settings: int) -> SocketChannel:
    config = ClientConfig(**settings)  # type: ignore[arg-type]
    return SocketChannel(Address(host="127.0.0.1", port=port), config)


@in_a_loop
async def test_concurrent_calls_share_one_connection() -> None:
    with FakeBroker({ListGroupsRequest: NO_GROUPS}, topics={"orders": 2}) as broker:
        channel = a_channel(broker.port)
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(channel.call(ALL, MetadataResponse)) for _ in range(20)]
            others = [
                tasks.create_task(channel.call(ListGroupsRequest(), ListGroupsResponse))
                for _ in range(20)
            ]
        channel.close()
        assert {task.result().topics[0].name for task in asked} == {"orders"}
        assert [task.result() for task in others] == [NO_GROUPS] * 20
        assert len(broker.requests(ApiVersionsRequest)) == 1


@in_a_loop
async def test_calls_beyond_the_in_flight_limit_wait_for_their_turn() -> None:
    with FakeBroker() as broker:
        channel = a_channel(broker.port, in_flight_max=2)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(9):
                tasks.create_task(channel.call(ALL, MetadataResponse))
        channel.close()
        assert len(broker.requests(MetadataRequest)) == 9


@in_a_loop
async def test_after_a_lost_connection_the_next_call_reconnects() -> None:
    table = {ListGroupsRequest: one_after_another(HANG_UP, NO_GROUPS)}
    with FakeBroker(table) as broker:
        channel = a_channel(broker.port)
        with pytest.raises(ConnectionLost):
            await channel.call(ListGroupsRequest(), ListGroupsResponse)
        assert await channel.call(ListGroupsRequest(), ListGroupsResponse) == NO_GROUPS
        channel.close()


@in_a_loop
async def test_a_cancelled_call_does_not_disturb_the_answers_of_others() -> None:
    with FakeBroker({ListGroupsRequest: NO_GROUPS}) as broker:
        channel = a_channel(broker.port)
        await channel.call(ALL, MetadataResponse)
        gone = asyncio.ensure_future(channel.call(ALL, MetadataResponse))
        await asyncio.sleep(0)
        gone.cancel()
        assert await channel.call(ListGroupsRequest(), ListGroupsResponse) == NO_GROUPS
        channel.close()
        with pytest.raises(asyncio.CancelledError):
            await gone


@in_a_loop
async def test_a_port_without_a_listener_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match=f"cannot reach a broker at 127.0.0.1:{port}: "):
        await a_channel(port).call(ALL, MetadataResponse)


@in_a_loop
async def test_a_silent_broker_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        channel = a_channel(listener.getsockname()[1], connect_ms_max=100)
        with pytest.raises(Unreachable, match="no answer in time"):
            await channel.call(ALL, MetadataResponse)
