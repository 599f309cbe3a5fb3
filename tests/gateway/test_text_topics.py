"""Topics that are being opened are waited for; lost partitions are skipped."""

import asyncio
from pathlib import Path
from typing import Any

from kafkaesque.client.channel import Channel
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.metadata import MetadataResponse
from tests.gateway.text_clients import text_broker


class OnePartitionLost:
    """A channel to a broker on which partition 1 of every topic has lost its only replica."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def call(self, request: Any, response: type[Any]) -> Any:
        """Answer Metadata as it would be then."""
        answer = await self._channel.call(request, response)
        if not isinstance(answer, MetadataResponse):
            return answer
        return _changed(answer, topics=tuple(self._without_one(t) for t in answer.topics))

    def _without_one(self, topic: Any) -> Any:
        lost = {"error_code": ErrorCode.LEADER_NOT_AVAILABLE, "offline_replicas": (1,)}
        partitions = tuple(
            _changed(p, **lost) if p.partition_index == 1 else p for p in topic.partitions
        )
        return _changed(topic, partitions=partitions)


def _changed(value: Any, **fields: Any) -> Any:
    old = {name: getattr(value, name) for name in value.__struct_fields__}
    return type(value)(**{**old, **fields})


def test_records_without_a_key_skip_a_lost_partition(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=OnePartitionLost) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 3")
            for number in range(4):
                assert await client.ask(f'PUBS t {{"Body":"{number}"}}') == "Done"
            ids = await client.data("SUBS t g 3")
            found = [await client.data(f"CONS t {one} 0") for one in ids]
            assert [[record["Body"] for record in part] for part in found] == [
                ["0", "2"],
                [],
                ["1", "3"],
            ]

    asyncio.run(go())
