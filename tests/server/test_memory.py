"""What a broker keeps in memory: nothing of a request that was answered or will never be complete.

The cycle collector runs late (`server/edge/memory.py`), so here it does not run at all.
"""

import asyncio
import gc
import struct
import tracemalloc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkaesque.server.edge.counters import Kind
from kafkaesque.server.handlers import produce
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.server.running import (
    LOOPS,
    Peer,
    Running,
    a_metadata,
    a_produce,
    an_api_versions,
    run_on,
    running,
)
from tests.server.test_produce import a_batch

TOPIC = "orders"
VALUE_BYTES = 500_000
REQUESTS = 10
KEPT_BYTES_MAX = VALUE_BYTES
"""Less than one request; all of them would be ten times as much."""


@contextmanager
def nothing_stays() -> Iterator[None]:
    """Fail if much more is allocated at the end than at the beginning."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        yield
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert kept_bytes < KEPT_BYTES_MAX


async def a_client(broker: Running) -> Peer:
    """Return a client with a topic, ready to produce."""
    client = await broker.connect()
    client.send(a_metadata(TOPIC))
    await client.answer()
    client.send(a_produce(TOPIC, b"first", 2))
    assert await client.correlation() == 2
    return client


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("acks", [-1, 0, 1, 7], ids=["all", "none", "leader", "refused"])
def test_an_answered_request_is_freed(tmp_path: Path, loop: str, acks: int) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            client = await a_client(broker)
            with nothing_stays():
                for number in range(REQUESTS):
                    client.send(a_produce(TOPIC, bytes(VALUE_BYTES), number, acks))
                    client.send(an_api_versions(100 + number))
                    if acks:
                        assert await client.correlation() == number
                    assert await client.correlation() == 100 + number

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
def test_half_a_request_is_freed_with_its_connection(tmp_path: Path, loop: str) -> None:
    half = struct.pack(">ihhi", 2 * VALUE_BYTES, 0, 9, 1) + bytes(VALUE_BYTES)

    async def go() -> None:
        async with running(tmp_path) as broker:
            edge = broker.node.edge
            await a_client(broker)
            with nothing_stays():
                for _ in range(REQUESTS):
                    client = await broker.connect()
                    client.send(half)
                    await broker.until(lambda: edge.budget.held_bytes == len(half))
                    client.writer.transport.abort()
                    await broker.until(lambda: edge.counters.open[Kind.KAFKA] == 1)

    run_on(loop, go())


@pytest.mark.parametrize("transactional_id", [None, "till"])
def test_a_request_waiting_for_a_commit_keeps_no_records(
    tmp_path: Path, transactional_id: str | None
) -> None:
    def begun(session: Session) -> tuple[produce.Producing[object], weakref.ref[memoryview]]:
        records = memoryview(bytearray(a_batch()))
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),),
        )
        return produce.begin(request, 9, session, as_it_is), weakref.ref(records)

    def as_it_is(response: ProduceResponse | None) -> object:
        return response

    async def go() -> None:
        async with running(tmp_path) as broker:
            await a_client(broker)
            session = Session(broker=broker.node.broker, host="127.0.0.1", port=1)
            waiting, records = begun(session)
            session.broker.flush()
            assert not waiting.is_done
            assert records() is None
            waiting.cancel()

    asyncio.run(go())
