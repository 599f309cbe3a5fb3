"""The channel to the whole cluster: requests are split by leader, and some never answer."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.calls import COMMAND
from kafkaesque.clock import SystemClock
from kafkaesque.errors import PeerUnreachable
from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_message import Message
from kafkaesque.gateway.text_publish import publish
from kafkaesque.net.codec import Failure, Reply
from kafkaesque.net.ports import Question
from kafkaesque.record.key_partition import partition_of
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.peers.cluster_channel import (
    ONE_LEADER_WAIT_MS_MAX,
    REQUESTS_PENDING_MAX,
    SEVERAL_LEADERS_WAIT_MS_MAX,
    ClusterChannel,
    Forwarded,
    hand_on,
)
from kafkaesque.server.peers.local_channel import LocalChannel
from kafkaesque.server.peers.peering import Ask
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.server_config import LimitsConfig
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from kafkaesque.wire.apis import APIS
from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.net.identities import an_identity
from tests.net.linking import QUICK, End, introduce, linked, listening, until
from tests.server.memory_broker import MemoryBroker
from tests.sim.test_broker_world import broker_of, create, ready_world, wait

LONG_MS = 30_000
FETCH_KEY = api_of(FetchRequest).key
FETCH_VERSION = api_of(FetchRequest).last

Answering = Callable[[Any], Any]
"""What another broker answers to a request; None for no answer."""


class Other:
    """Another broker of the cluster: its requests, and its answers."""

    def __init__(self, node: NodeId, answering: Answering) -> None:
        self.asked: list[Any] = []
        self.end = End(an_identity(node), QUICK, on_question=self._on_question)
        self._answering = answering

    def _on_question(self, question: Question) -> None:
        if question.kind != Ask.REQUEST:
            question.reply(b"other")
            return
        key, version = struct.unpack_from(">hh", question.data)
        request = decode(APIS[key].request, version, question.data[4:])
        self.asked.append(request)
        answer = self._answering(request)
        if answer is not None:
            question.reply(encode(answer, version))


class Channelled:
    """The channel of broker 1, and which partitions of `orders` each broker leads."""

    def __init__(self, world: BrokerWorld, end: End) -> None:
        self.links = end.links
        self.broker = broker_of(world, 1)
        self.topic = self.broker.topics.topic("orders")
        self.local = LocalChannel(self.broker, "127.0.0.1", 1)
        self.channel = ClusterChannel(self.broker, self.local, end.links)

    def led_by(self, node: NodeId) -> int:
        """Return the partition that a broker leads."""
        (found,) = [p for p in range(3) if self.broker.partition_leader(self.topic, p).node == node]
        return found

    async def fetch(self, *nodes: NodeId, max_wait_ms: int = LONG_MS) -> tuple[PartitionData, ...]:
        """Fetch from the partitions that these brokers lead."""
        request = self.a_fetch(*nodes, max_wait_ms=max_wait_ms)
        answer = await self.channel.call(request, FetchResponse)
        return answer.responses[0].partitions

    async def publish(self, *nodes: NodeId) -> dict[NodeId, str | None]:
        """Publish a message to the partition of each broker; return the outcomes."""
        partitions = [self.led_by(node) for node in nodes]
        desk = TextDesk(self.channel, SystemClock())
        keys = {partition_of(b"%d" % n, 3): b"%d" % n for n in range(20)}
        messages = [Message(key=keys[p], header=None, body=b"x") for p in partitions]
        return dict(zip(nodes, await publish(desk, "orders", messages), strict=True))

    def a_fetch(self, *nodes: NodeId, max_wait_ms: int = LONG_MS) -> FetchRequest:
        partitions = tuple(
            FetchPartition(partition=self.led_by(node), fetch_offset=0, partition_max_bytes=1)
            for node in nodes
        )
        topic = FetchTopic(topic_id=self.topic.topic_id, topic="orders", partitions=partitions)
        return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=(topic,))


@asynccontextmanager
async def channelled(*others: Other) -> AsyncIterator[Channelled]:
    """Link broker 1 of three, each of which leads one partition, to some of the others."""
    world = ready_world(racks=3)
    assert create(world, 1, "orders", 3) is None
    wait(world, lambda: is_of_one_mind(world))
    mine = End(an_identity(1), QUICK)
    ends = [mine, *(other.end for other in others)]
    async with listening(*ends):
        introduce(*ends)
        await linked(*ends)
        yield Channelled(world, mine)


def empty(request: FetchRequest) -> FetchResponse:
    """Answer that there is nothing new."""
    return FetchResponse(
        responses=tuple(
            FetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(
                    PartitionData(
                        partition_index=one.partition,
                        error_code=0,
                        high_watermark=0,
                        aborted_transactions=None,
                        records=None,
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def test_another_broker_gets_a_shorter_wait_than_the_timeout_of_a_call() -> None:
    async def go() -> None:
        other = Other(2, empty)
        async with channelled(other) as found:
            await found.fetch(2)
            await found.fetch(2, max_wait_ms=7)
        assert [request.max_wait_ms for request in other.asked] == [ONE_LEADER_WAIT_MS_MAX, 7]
        assert QUICK.call_ms_max >= ONE_LEADER_WAIT_MS_MAX * 2

    asyncio.run(go())


def test_several_brokers_get_only_a_short_wait() -> None:
    async def go() -> None:
        two, three = Other(2, empty), Other(3, empty)
        async with channelled(two, three) as found:
            assert len(await found.fetch(2, 3)) == 2
        waits = [request.max_wait_ms for request in two.asked + three.asked]
        assert waits == [SEVERAL_LEADERS_WAIT_MS_MAX] * 2

    asyncio.run(go())


def test_an_unreachable_leader_does_not_delay_records_of_others() -> None:
    async def go() -> None:
        async with channelled(Other(2, empty)) as found:
            answers = await found.fetch(2, 3, max_wait_ms=0)
            codes = {one.partition_index: one.error_code for one in answers}
            assert codes == {
                found.led_by(2): ErrorCode.NONE,
                found.led_by(3): ErrorCode.LEADER_NOT_AVAILABLE,
            }

    asyncio.run(go())


def test_waiting_requests_leave_room_on_the_link_for_other_calls() -> None:
    async def go() -> None:
        other = Other(2, lambda _: None)
        async with channelled(other) as found:
            request = found.a_fetch(2)
            waiting = [
                asyncio.ensure_future(hand_on(found.links, 2, request, FETCH_VERSION))
                for _ in range(REQUESTS_PENDING_MAX)
            ]
            await until(lambda: len(other.asked) == REQUESTS_PENDING_MAX)
            with pytest.raises(PeerUnreachable, match="wait for answers"):
                await hand_on(found.links, 2, request, FETCH_VERSION)
            assert bytes(await found.links.call(2, COMMAND.number, b"")) == b"other"
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)

    asyncio.run(go())


def an_edge(broker: Broker, *, is_open: bool = True) -> Edge:
    edge = Edge(broker, LimitsConfig(), SystemClock(), None, Turn())
    edge.is_open = is_open
    return edge


def test_a_request_to_a_broker_that_lags_is_answered_when_it_has_caught_up() -> None:
    async def go() -> None:
        answers: list[Reply | Failure] = []
        memory = MemoryBroker()
        edge = an_edge(memory.broker, is_open=False)
        forwarded = Forwarded(LocalChannel(memory.broker, "", 1), edge)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
        wanted = FetchTopic(topic_id=b"t" * 16, partitions=(partition,))
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(wanted,))
        data = struct.pack(">hh", FETCH_KEY, FETCH_VERSION) + encode(request, FETCH_VERSION)
        forwarded.answer(Question(2, Ask.REQUEST, memoryview(data), 1, answers.append))
        await asyncio.sleep(0)
        assert (answers, edge.waiting) == ([], 1), "it does not say that there is no such topic"
        edge.open()
        await until(lambda: bool(answers))
        assert isinstance(answers[0], Reply)

    asyncio.run(go())


def test_abandoned_requests_count_until_their_handlers_end() -> None:
    async def go() -> None:
        answers: list[Reply | Failure] = []
        async with channelled() as found:
            forwarded = Forwarded(found.local, an_edge(MemoryBroker().broker))
            waiting = encode(found.a_fetch(1), FETCH_VERSION)
            data = memoryview(struct.pack(">hh", FETCH_KEY, FETCH_VERSION) + waiting)
            for number in range(REQUESTS_PENDING_MAX):
                forwarded.answer(Question(2, Ask.REQUEST, data, number, answers.append))
            assert not answers
            forwarded.answer(Question(2, Ask.REQUEST, data, -1, answers.append))
            (refused,) = answers
            assert isinstance(refused, Failure)
            assert "too many requests" in refused.reason
            forwarded.answer(Question(3, Ask.REQUEST, data, -2, answers.append))
            assert len(answers) == 1

    asyncio.run(go())


def produced(request: ProduceRequest) -> ProduceResponse:
    """Answer that everything is committed."""
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    PartitionProduceResponse(index=one.index, error_code=0, base_offset=0)
                    for one in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def test_messages_for_a_leader_that_was_not_reached_have_a_known_outcome() -> None:
    async def go() -> None:
        async with channelled(Other(2, produced)) as found:
            fates = await found.publish(2, 3)
            assert fates == {2: None, 3: "there is no link to node 3"}

    asyncio.run(go())


def test_messages_for_a_leader_that_was_lost_have_an_unknown_outcome() -> None:
    async def go() -> None:
        two = Other(2, produced)
        three = Other(3, lambda _: None)
        async with channelled(two, three) as found:
            publishing = asyncio.ensure_future(found.publish(2, 3))
            await until(lambda: bool(three.asked))
            await three.end.links.close()
            fates = await publishing
            assert fates[2] is None
            assert "the outcome is unknown" in str(fates[3])

    asyncio.run(go())


@pytest.mark.parametrize("data", [b"", b"\0\3\0", b"\x7f\xff\0\0", b"\0\3\0\x0c", b"\0\3\x7f\xff"])
def test_a_malformed_call_is_refused_and_breaks_nothing(data: bytes) -> None:
    answers: list[Failure | Reply] = []
    question = Question(2, Ask.REQUEST, memoryview(data), 7, answers.append)
    broker = MemoryBroker().broker
    Forwarded(LocalChannel(broker, "broker.example", 1234), an_edge(broker)).answer(question)
    [answer] = answers
    assert isinstance(answer, Failure)
    assert answer.reason.startswith("the request cannot be read")
