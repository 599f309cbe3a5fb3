"""The channel to the broker of this process: the same handlers and answers, no bytes."""

import asyncio
from pathlib import Path

import pytest

from kafkaesque.node import Node, NodeSettings
from kafkaesque.server.peers.local_channel import LocalChannel
from kafkaesque.wire.errors import ApiNotServed
from kafkaesque.wire.message import Api, message
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


@message(Api(key=9_999, name="Unheard", first=0, last=0, flexible_since=0))
class UnservedRequest:
    """A request that no broker serves."""

    word: str


def test_a_request_is_answered_by_the_broker_in_this_process(tmp_path: Path) -> None:
    async def go() -> None:
        node = Node(NodeSettings(port=0, data=tmp_path))
        await node.start()
        channel = LocalChannel(node.broker, "broker.example", 1234)
        request = MetadataRequest(topics=(MetadataRequestTopic(name="fresh"),))
        answer = await channel.call(request, MetadataResponse)
        assert (answer.brokers[0].host, answer.brokers[0].port) == ("broker.example", 1234)
        assert answer.topics[0].name == "fresh"
        assert "fresh" in node.broker.catalog.topics
        await node.stop()

    asyncio.run(go())


def test_an_api_without_a_handler_is_recognized(tmp_path: Path) -> None:
    async def go() -> None:
        node = Node(NodeSettings(port=0, data=tmp_path))
        await node.start()
        channel = LocalChannel(node.broker, "127.0.0.1", node.port)
        with pytest.raises(ApiNotServed, match="Unheard is not served"):
            await channel.call(UnservedRequest(word="x"), object)
        await node.stop()

    asyncio.run(go())
