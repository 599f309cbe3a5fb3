"""Pushing: records go to subscribers as they arrive, from where the group stopped."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaesque.client.channel import Channel
from kafkaesque.errors import PeerUnreachable
from kafkaesque.server_config import TextLimits
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.fetch import FetchRequest
from kafkaesque.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.gateway.text_clients import SECONDS_MAX, TextClient, text_broker


async def pushed(client: TextClient, count: int) -> list[Any]:
    """Return the bodies of the next records."""
    return [json.loads(await client.line())["Body"] for _ in range(count)]


@pytest.mark.requirement("PAT-2")
def test_records_are_pushed_as_they_arrive_until_stop(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            reader, writer = await broker.connect(), await broker.connect()
            await writer.ask("CRTP t 1")
            await writer.ask('PUBS t {"Body":"before"}')
            await reader.data("PUSH t g")
            await writer.ask('PUBS t {"Key":"k","Header":"h","Body":"one"}')
            line = '{"Header":"h","Body":"one","Key":"k","Offset":1,"Partition":0}'
            assert await reader.line() == line
            assert await reader.ask("STOP") == "Done"
            await writer.ask('PUBS t {"Body":"after"}')
            assert await reader.data("LIST") == [{"Topic": "t", "Partitions": 1}]

    asyncio.run(go())


def test_commands_are_answered_while_records_are_pushed(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 2")
            assert len(await client.data("PUSH t g")) == 2
            assert "STOP it first" in await client.error("PUSH t other")
            client.type('PUBS t {"Body":"x"}')
            lines = {await client.line(), await client.line()}
            assert "Done" in lines
            assert len(lines) == 2

    asyncio.run(go())


def test_ctrl_c_stops_the_pushing(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 1")
            await client.data("PUSH t g")
            client.writer.write(b"\xff\xf4\xff\xfd\x06")
            async with asyncio.timeout(SECONDS_MAX):
                assert await client.reader.readexactly(3) == b"\xff\xfc\x06"
            assert await client.line() == "Done"
            assert len(broker.desk.subscriptions) == 0

    asyncio.run(go())


def test_subscribers_of_a_group_share_its_partitions(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            anna, bert, cora = [await broker.connect() for _ in range(3)]
            await anna.ask("CRTP t 2")
            assert len(await anna.data("PUSH t g 1")) == 1
            assert len(await bert.data("PUSH t g")) == 1
            assert "taken" in await cora.error("PUSH t g")
            await cora.ask('PUBS t {"Body":"0"}')
            await cora.ask('PUBS t {"Body":"1"}')
            assert await pushed(anna, 1) + await pushed(bert, 1) == ["0", "1"]

    asyncio.run(go())


def test_pushing_ends_with_a_sentence_when_it_cannot_continue(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Vanishing) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 1")
            await client.data("PUSH t g")
            assert "push has ended" in await client.line()
            assert "no push is running" in await client.error("STOP")

    asyncio.run(go())


class Vanishing:
    """A channel to a broker on which the topic is gone as soon as it is fetched from."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def call(self, request: Any, response: type[Any]) -> Any:
        """Fetch from a topic that does not exist."""
        if type(request).__name__ == "FetchRequest":
            topic = request.topics[0]
            gone = type(topic)(topic="gone", partitions=topic.partitions)
            request = type(request)(max_wait_ms=0, min_bytes=1, topics=(gone,))
        return await self._channel.call(request, response)


def test_a_slow_reader_is_waited_for_and_misses_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        limits = TextLimits(write_buffer_bytes=10_000, fetch_bytes=100_000)
        async with text_broker(tmp_path, limits=limits) as broker:
            reader, writer = await broker.connect(), await broker.connect()
            await writer.ask("CRTP t 1")
            await reader.data("PUSH t g")
            count, body = 300, "x" * 100_000  # 30 MB, far more than the sockets hold
            for number in range(count):
                writer.type(f'PUBS t {{"Key":"{number}","Body":"{body}"}}')
            assert [await writer.line() for _ in range(count)] == ["Done"] * count
            keys = [json.loads(await reader.line())["Key"] for _ in range(count)]
            assert keys == [str(number) for number in range(count)]

    asyncio.run(go())


class Keeper:
    """A channel to a broker that stores the positions of groups; one group belongs to others."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.kept: dict[tuple[str, int], int] = {}
        self.times_asked = 0

    async def call(self, request: Any, response: type[Any]) -> Any:
        """Answer for the coordinator, forward the rest."""
        if isinstance(request, FindCoordinatorRequest):
            return self._find(request)
        if isinstance(request, OffsetFetchRequest):
            return self._fetch(request)
        if isinstance(request, OffsetCommitRequest):
            return self._commit(request)
        return await self._channel.call(request, response)

    def _find(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        (group,) = request.coordinator_keys
        self.times_asked += 1
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if self.times_asked == 1 else ErrorCode.NONE
        found = Coordinator(
            key=group, node_id=1, host="", port=1, error_code=code, error_message=None
        )
        return FindCoordinatorResponse(coordinators=(found,))

    def _fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        (group,) = request.groups
        assert group.topics is not None
        partitions = tuple(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=self.kept.get((group.group_id, index), -1),
                metadata="",
                error_code=0,
            )
            for index in group.topics[0].partition_indexes
        )
        topic = OffsetFetchResponseTopics(partitions=partitions)
        return OffsetFetchResponse(
            groups=(OffsetFetchResponseGroup(group_id=group.group_id, topics=(topic,)),)
        )

    def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        code = 25 if request.group_id == "busy" else 0
        (topic,) = request.topics
        if not code:
            for one in topic.partitions:
                self.kept[request.group_id, one.partition_index] = one.committed_offset
        answered = tuple(
            OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in topic.partitions
        )
        return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(partitions=answered),))


def test_a_group_continues_where_it_stopped(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Keeper) as broker:
            writer = await broker.connect()
            await writer.ask("CRTP t 1")
            await writer.ask('PUBS t {"Body":"before"}')
            reader = await broker.connect()
            await reader.data("PUSH t g")
            await writer.ask('PUBS t {"Body":"first"}')
            assert await pushed(reader, 1) == ["first"]
            assert await reader.ask("STOP") == "Done"
            await writer.ask('PUBS t {"Body":"meanwhile"}')
            await reader.data("PUSH t g")
            assert await pushed(reader, 1) == ["meanwhile"]
            assert await reader.ask("DISC") == "Bye"
            await writer.ask('PUBS t {"Body":"later"}')
            await writer.data("PUSH t g")
            assert await pushed(writer, 1) == ["later"]

    asyncio.run(go())


def test_a_group_with_other_members_gets_nothing_pushed(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Keeper) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 1")
            assert "in use by Kafka consumers" in await client.error("PUSH t busy")
            assert len(broker.desk.subscriptions) == 0

    asyncio.run(go())


class Moving(Keeper):
    """A channel to a cluster whose leader and coordinator move, as often as a test says."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.fetches_refused = 0
        self.fetches_lost = 0
        self.commits_refused = 0

    async def call(self, request: Any, response: type[Any]) -> Any:
        """Refuse and lose the planned requests; forward the rest."""
        if isinstance(request, FetchRequest) and self.fetches_lost:
            self.fetches_lost -= 1
            raise PeerUnreachable("there is no link to node 2")
        answer = await super().call(request, response)
        if isinstance(request, FetchRequest) and self.fetches_refused:
            self.fetches_refused -= 1
            return _refused(answer)
        return answer

    def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        if self.commits_refused:
            self.commits_refused -= 1
            refused = tuple(
                OffsetCommitResponsePartition(
                    partition_index=one.partition_index, error_code=ErrorCode.NOT_COORDINATOR
                )
                for one in request.topics[0].partitions
            )
            return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(partitions=refused),))
        return super()._commit(request)


def _refused(answer: Any) -> Any:
    (topic,) = answer.responses
    partitions = tuple(
        replace(one, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, records=None)
        for one in topic.partitions
    )
    return replace(answer, responses=(replace(topic, partitions=partitions),))


def test_pushing_continues_when_a_leader_moves(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Moving) as broker:
            way = broker.desk.channel
            assert isinstance(way, Moving)
            reader, writer = await broker.connect(), await broker.connect()
            await writer.ask("CRTP t 1")
            way.fetches_lost = way.fetches_refused = 2
            await reader.data("PUSH t g")
            await writer.ask('PUBS t {"Body":"one"}')
            assert await pushed(reader, 1) == ["one"]
            assert way.fetches_lost == way.fetches_refused == 0

    asyncio.run(go())


def test_pushing_ends_when_there_is_no_leader_for_long(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Moving) as broker:
            way = broker.desk.channel
            assert isinstance(way, Moving)
            client = await broker.connect()
            await client.ask("CRTP t 1")
            broker.desk.limits = TextLimits(timeout_ms=150)
            way.fetches_lost = 1_000
            await client.data("PUSH t g")
            assert "push has ended: there is no link" in await client.line()

    asyncio.run(go())


def test_a_position_that_another_broker_has_advanced_does_not_move_back(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Keeper) as broker:
            way = broker.desk.channel
            assert isinstance(way, Keeper)
            reader, writer = await broker.connect(), await broker.connect()
            await writer.ask("CRTP t 2")
            await reader.data("PUSH t g")
            await writer.ask('PUBS t {"Body":"one"}')
            await writer.ask('PUBS t {"Body":"two"}')
            assert sorted(await pushed(reader, 2)) == ["one", "two"]
            way.kept["g", 1] = 7
            assert await reader.ask("STOP") == "Done"
            assert way.kept == {("g", 0): 1, ("g", 1): 7}

    asyncio.run(go())


def test_the_last_position_is_committed_though_the_coordinator_moves(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Moving) as broker:
            way = broker.desk.channel
            assert isinstance(way, Moving)
            reader, writer = await broker.connect(), await broker.connect()
            await writer.ask("CRTP t 1")
            await reader.data("PUSH t g")
            await writer.ask('PUBS t {"Body":"one"}')
            assert await pushed(reader, 1) == ["one"]
            way.commits_refused = 3
            assert await reader.ask("STOP") == "Done"
            assert way.kept == {("g", 0): 1}

    asyncio.run(go())


def test_a_position_that_could_not_be_committed_is_committed_later(tmp_path: Path) -> None:
    async def go() -> None:
        limits = TextLimits(commit_interval_ms=0)
        async with text_broker(tmp_path, limits=limits, wrap=Moving) as broker:
            way = broker.desk.channel
            assert isinstance(way, Moving)
            reader, writer = await broker.connect(), await broker.connect()
            await writer.ask("CRTP t 1")
            await reader.data("PUSH t g")
            way.commits_refused = 2
            await writer.ask('PUBS t {"Body":"one"}')
            assert await pushed(reader, 1) == ["one"]
            async with asyncio.timeout(SECONDS_MAX):
                while way.kept != {("g", 0): 1}:  # noqa: ASYNC110  # there is no notice
                    await asyncio.sleep(0.01)
            assert await reader.ask("STOP") == "Done"

    asyncio.run(go())


def test_the_broker_keeps_the_positions_across_a_restart(tmp_path: Path) -> None:
    async def first() -> None:
        async with text_broker(tmp_path) as broker:
            reader, writer = await broker.connect(), await broker.connect()
            await writer.ask("CRTP t 1")
            await reader.data("PUSH t g")
            await writer.ask('PUBS t {"Body":"seen"}')
            assert await pushed(reader, 1) == ["seen"]
            assert await reader.ask("DISC") == "Bye"
            await writer.ask('PUBS t {"Body":"missed"}')

    async def second() -> None:
        async with text_broker(tmp_path) as broker:
            reader = await broker.connect()
            await reader.data("PUSH t g")
            assert await pushed(reader, 1) == ["missed"]

    asyncio.run(first())
    asyncio.run(second())
