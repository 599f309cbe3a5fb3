"""Produce and InitProducerId as a broker answers them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kafkaesque.clock import SystemClock
from kafkaesque.node import Node, NodeSettings
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.server.handlers import init_producer_id, produce
from kafkaesque.server.requests.callback_waits import topic_created
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

VERSION = 9
TOPIC = "orders"


class Door:
    """A running broker, used without a connection."""

    def __init__(self, node: Node) -> None:
        self.session = Session(broker=node.broker, host="127.0.0.1", port=1)

    async def create(self, **settings: str) -> None:
        named = {name.replace("_", "."): text for name, text in settings.items()}
        await topic_created(self.session.broker, TOPIC, 1, named)

    async def produce(
        self, records: bytes | None, acks: int = -1, topic: str = TOPIC
    ) -> PartitionProduceResponse:
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            transactional_id=None,
            acks=acks,
            timeout_ms=10_000,
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )
        response = await produce.handle(request, VERSION, self.session)
        assert response is not None
        return response.responses[0].partition_responses[0]

    async def init_producer(
        self, transactional_id: str | None = None, producer_id: int = -1, epoch: int = -1
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        return await init_producer_id.handle(request, 5, self.session)


def play(data: Path, story: Callable[[Door], Awaitable[None]]) -> None:
    """Run a story against a broker with its data in a folder, from start to clean stop."""

    async def go() -> None:
        node = Node(NodeSettings(port=0, data=data))
        await node.start()
        try:
            async with asyncio.timeout(20):
                await story(Door(node))
        finally:
            await node.stop()

    asyncio.run(go())


def a_batch(sequence: int | None = None, producer_id: int = 0, key: bytes | None = None) -> bytes:
    stamp = None
    if sequence is not None:
        stamp = ProducerStamp(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    record = Record(offset=0, timestamp_ms=SystemClock().now_ms(), key=key, value=b"v")
    return bytes(build_batch([record], producer=stamp))


def test_a_retry_gets_the_answer_of_the_first(tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        await door.create()
        first = await door.produce(a_batch(0))
        await door.produce(a_batch(1))
        assert await door.produce(a_batch(0)) == first
        assert first.base_offset == 0
        assert (await door.produce(a_batch(2))).base_offset == 2

    play(tmp_path, story)


def test_a_gap_in_the_sequence_has_its_own_error_code(tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        await door.create()
        await door.produce(a_batch(0))
        answer = await door.produce(a_batch(2))
        assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert answer.base_offset == -1

    play(tmp_path, story)


@pytest.mark.parametrize("acks", [-2, 2, 7])
def test_invalid_acks_are_refused(tmp_path: Path, acks: int) -> None:
    async def story(door: Door) -> None:
        await door.create()
        answer = await door.produce(a_batch(), acks)
        assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
        assert (await door.produce(a_batch())).base_offset == 0

    play(tmp_path, story)


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_clients_cannot_write_to_internal_topics(tmp_path: Path, topic: str) -> None:
    async def story(door: Door) -> None:
        answer = await door.produce(a_batch(), topic=topic)
        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    play(tmp_path, story)


def test_a_compacted_topic_lists_the_records_without_a_key(tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        await door.create(cleanup_policy="compact")
        answer = await door.produce(a_batch())
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert [one.batch_index for one in answer.record_errors] == [0]
        assert answer.error_message is not None
        assert "without a key" in answer.error_message
        assert (await door.produce(a_batch(key=b"k"))).error_code == ErrorCode.NONE

    play(tmp_path, story)


def test_the_append_time_is_returned_where_it_is_stored(tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        await door.create(message_timestamp_type="LogAppendTime")
        first = await door.produce(a_batch(0))
        assert first.log_append_time_ms > 5
        assert (await door.produce(a_batch(0))).log_append_time_ms == first.log_append_time_ms

    play(tmp_path, story)


def test_the_producers_timestamp_is_not_returned(tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        await door.create()
        assert (await door.produce(a_batch(0))).log_append_time_ms == -1
        assert (await door.produce(a_batch(0))).log_append_time_ms == -1

    play(tmp_path, story)


@pytest.mark.setting("min.insync.replicas")
def test_without_enough_replicas_only_weaker_acks_succeed(tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        await door.create(min_insync_replicas="2")
        assert (await door.produce(a_batch())).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await door.produce(a_batch(), acks=1)).base_offset == 0

    play(tmp_path, story)


def test_a_batch_of_a_transaction_is_refused(tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        await door.create()
        record = Record(offset=0, timestamp_ms=SystemClock().now_ms(), key=None, value=b"v")
        batch = bytes(build_batch([record], traits=BatchTraits(is_transactional=True)))
        assert (await door.produce(batch)).error_code == ErrorCode.INVALID_TXN_STATE

    play(tmp_path, story)


@pytest.mark.parametrize(
    "records", [None, b"", b"\0" * 10, a_batch() + a_batch()], ids=["none", "empty", "zeros", "two"]
)
def test_anything_but_exactly_one_batch_is_refused(tmp_path: Path, records: bytes | None) -> None:
    async def story(door: Door) -> None:
        await door.create()
        assert (await door.produce(records)).error_code == ErrorCode.INVALID_RECORD

    play(tmp_path, story)


def test_producer_ids_are_assigned_once_even_across_a_restart(tmp_path: Path) -> None:
    given: list[int] = []

    async def story(door: Door) -> None:
        for _ in range(3):
            answer = await door.init_producer()
            assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
            given.append(answer.producer_id)

    play(tmp_path, story)
    play(tmp_path, story)
    assert len(set(given)) == 6
    assert min(given) >= 0


def test_the_epoch_of_a_producer_is_raised(tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        producer_id = (await door.init_producer()).producer_id
        raised = await door.init_producer(producer_id=producer_id, epoch=4)
        assert (raised.producer_id, raised.producer_epoch) == (producer_id, 5)

    play(tmp_path, story)


@pytest.mark.parametrize(("producer_id", "epoch"), [(0, (1 << 15) - 1), (1 << 40, 0), (-5, 0)])
def test_an_exhausted_epoch_leads_to_another_id(
    tmp_path: Path, producer_id: int, epoch: int
) -> None:
    async def story(door: Door) -> None:
        assert (await door.init_producer()).producer_id == 0
        other = await door.init_producer(producer_id=producer_id, epoch=epoch)
        assert (other.producer_id, other.producer_epoch) == (1, 0)

    play(tmp_path, story)
