"""Hostile and broken clients on a socket: the broker keeps serving all others."""

import asyncio
import logging
import struct
from pathlib import Path

import pytest

from kafkaesque.server.edge.counters import Kind, Refusal
from kafkaesque.server_config import LimitsConfig
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.server.running import (
    LOOPS,
    Running,
    a_fetch,
    a_metadata,
    a_produce,
    an_api_versions,
    framed,
    request,
    run_on,
    running,
)

pytestmark = pytest.mark.parametrize("loop", LOOPS)


@pytest.mark.parametrize(
    "length", [-1, 0, 2**31 - 1, (100 << 20) + 1], ids=["-1", "0", "2^31-1", "past the limit"]
)
@pytest.mark.complains(
    "connection_closed reason=protocol peer=*: no protocol begins with byte 127",
    "connection_closed reason=protocol peer=*: no protocol begins with byte 255",
    "connection_closed reason=protocol peer=*: no protocol begins with byte 6",
    "connection_closed reason=request peer=*: 0 bytes are too few for a request",
    "connection_closed reason=request peer=*: a frame of -1 bytes, the limit is 104857600",
    "connection_closed reason=request peer=*: a frame of 104857601 bytes, the limit is *",
    "connection_closed reason=request peer=*: a frame of 2147483647 bytes, the limit is *",
)
def test_an_invalid_length_closes_only_its_connection(
    tmp_path: Path, loop: str, length: int
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            at_once, later = await broker.connect(), await broker.connect()
            later.send(an_api_versions(1))
            assert await later.correlation() == 1
            for bad in (at_once, later):
                bad.send(struct.pack(">i", length) + bytes(20))
                assert await bad.rest() == b""
            await broker.serves()

    run_on(loop, go())


@pytest.mark.complains(
    "connection_closed reason=request peer=*: a request of 1001 bytes for API 3, at most *",
)
def test_only_produce_requests_may_be_large(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(request_bytes_max=1000)) as broker:
            bad, good = await broker.connect(), await broker.connect()
            bad.send(struct.pack(">ihhi", 1001, 3, 9, 1))
            assert await bad.rest() == b""
            good.send(a_metadata("orders"))
            await good.answer()
            good.send(a_produce("orders", bytes(100_000), 5))
            assert await good.correlation() == 5

    run_on(loop, go())


def test_a_claimed_length_allocates_no_memory(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peers = [await broker.connect() for _ in range(20)]
            for peer in peers:
                peer.send(struct.pack(">ihhi", 15 << 20, 0, 9, 1) + bytes(30))
            await broker.until(lambda: broker.node.edge.budget.held_bytes == 20 * 42)
            await broker.serves()

    run_on(loop, go())


@pytest.mark.complains(
    "connection_closed reason=request_time peer=127.0.0.1: a kafka connection",
)
def test_a_request_that_arrives_too_slowly_is_cut_off(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(frame_ms_max=30_000)) as broker:
            slow, idle = await broker.connect(), await broker.connect()
            idle.send(an_api_versions())
            await idle.answer()
            data = a_metadata("orders")
            for place in range(4):  # a byte now and then does not prolong it
                slow.send(data[place : place + 1])
                await broker.until(lambda p=place: _held(broker) == p + 1)  # type: ignore[misc]
                await broker.pass_time(8_000)
            assert await slow.rest() == b""
            assert broker.node.edge.counters.refused[Refusal.REQUEST_TIME] == 1
            idle.send(an_api_versions(9))
            assert await idle.correlation() == 9

    run_on(loop, go())


def test_a_request_cut_off_at_any_byte_does_no_harm(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            data = a_metadata("orders")
            for end in range(1, len(data)):
                peer = await broker.connect()
                peer.send(data[:end])
                peer.writer.write_eof()
                assert await peer.rest() == b""
            await broker.until(lambda: not broker.node.edge.counters.open[Kind.KAFKA])
            assert broker.node.edge.budget.held_bytes == 0
            await broker.serves()

    run_on(loop, go())


def test_a_request_in_single_bytes_is_answered(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            for byte in an_api_versions(3):
                peer.send(bytes([byte]))
                await asyncio.sleep(0)
            assert await peer.correlation() == 3

    run_on(loop, go())


@pytest.mark.parametrize(
    "body",
    [struct.pack(">hhih", 9999, 0, 1, -1), struct.pack(">hhih", 3, 99, 1, -1), b"ab"],
    ids=["no such api", "no such version", "too short"],
)
@pytest.mark.complains(
    "connection_closed reason=request peer=*: 2 bytes are too few for a request",
    "connection_closed reason=request peer=*: API 9999 is not served here",
    "connection_closed reason=request peer=*: Metadata is not served in version 99",
)
def test_answers_to_requests_before_a_bad_one_still_arrive(
    tmp_path: Path, loop: str, body: bytes
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send(an_api_versions(4) + framed(body))
            assert await peer.correlation() == 4
            assert await peer.rest() == b""
            await broker.serves()

    run_on(loop, go())


def test_a_correlation_id_may_be_reused(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send(an_api_versions(4) * 3)
            assert [await peer.correlation() for _ in range(3)] == [4, 4, 4]

    run_on(loop, go())


@pytest.mark.complains(
    "connection_closed reason=first_byte_time peer=127.0.0.1: a new connection",
)
def test_a_silent_connection_is_closed_after_a_while(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(first_byte_ms_max=10_000)) as broker:
            silent = await broker.connect()
            await broker.pass_time(9_000)
            assert broker.node.edge.counters.open[Kind.NEW] == 1
            await broker.pass_time(2_000)
            assert await silent.rest() == b""

    run_on(loop, go())


@pytest.mark.complains(
    "connection_closed reason=idle peer=127.0.0.1: a kafka connection",
)
def test_an_idle_connection_is_closed_after_the_idle_time(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(idle_ms_max=600_000)) as broker:
            peer = await broker.connect()
            peer.send(an_api_versions())
            await peer.answer()
            await broker.pass_time(599_000)
            peer.send(an_api_versions())
            await peer.answer()
            await broker.pass_time(599_000)
            assert broker.node.edge.counters.refused[Refusal.IDLE] == 0
            await broker.pass_time(2_000)
            assert await peer.rest() == b""

    run_on(loop, go())


@pytest.mark.event("connection_closed", "connections_closed")
@pytest.mark.complains(
    "connection_closed reason=rate_per_address peer=127.0.0.1: too many",
    "connections_closed more=*",
)
def test_a_storm_of_connections_is_limited_to_the_rate_and_hardly_logged(
    tmp_path: Path, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    limits = LimitsConfig(
        loopback_is_limited=True, connection_rate_per_address_max=20, refusals_logged_max=5
    )

    async def go() -> None:
        async with running(tmp_path, limits) as broker:
            peers = [await broker.connect() for _ in range(100)]
            for peer in peers[20:]:
                assert await peer.rest() == b""
            peers[0].send(an_api_versions(8))
            assert await peers[0].correlation() == 8
            assert broker.node.edge.counters.refused[Refusal.RATE_PER_ADDRESS] == 80
            broker.clock.ms += 1_000
            await broker.serves()

    with caplog.at_level(logging.WARNING):
        run_on(loop, go())
    lines = [record.getMessage() for record in caplog.records]
    assert sum("reason=rate_per_address" in line for line in lines) == 5
    assert any(line.startswith("connections_closed more=75: a storm") for line in lines)


@pytest.mark.complains(
    "connection_closed reason=connections peer=127.0.0.1: too many",
)
def test_connections_beyond_the_limit_are_closed_until_others_leave(
    tmp_path: Path, loop: str
) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(connections_max=3)) as broker:
            peers = [await broker.connect() for _ in range(3)]
            await broker.until(lambda: broker.node.edge.counters.open[Kind.NEW] == 3)
            refused = await broker.connect()
            assert await refused.rest() == b""
            peers[0].writer.close()
            await broker.until(lambda: broker.node.edge.counters.open[Kind.NEW] == 2)
            await broker.serves()

    run_on(loop, go())


@pytest.mark.complains(
    "connection_closed reason=idle peer=127.0.0.1: a kafka connection",
)
def test_a_client_that_never_reads_costs_no_work_and_is_closed_in_the_end(
    tmp_path: Path, loop: str
) -> None:
    names = tuple(MetadataRequestTopic(name=f"{'n' * 200}{number}") for number in range(200))
    message = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    burst = request(message, 9) * 20
    limits = LimitsConfig(write_buffer_bytes_max=64 << 10)

    async def go() -> None:
        async with running(tmp_path, limits) as broker:
            deaf = await broker.connect()
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(300):  # 240 MB: more than any buffer between us holds
                deaf.send(burst)
                try:
                    await asyncio.wait_for(deaf.writer.drain(), 0.5)
                except TimeoutError:
                    break
            else:
                pytest.fail("everything was taken")
            assert broker.node.edge.budget.held_bytes < 2 << 20
            await broker.pass_time(601_000)
            await broker.until(lambda: not broker.node.edge.counters.open[Kind.KAFKA])

    run_on(loop, go())


def test_large_answers_are_not_built_for_a_client_that_does_not_read_them(
    tmp_path: Path, loop: str
) -> None:
    answers = 60
    value = bytes(1_000_000)

    async def go() -> None:
        async with running(tmp_path) as broker:
            deaf = await broker.connect()
            deaf.send(a_metadata("orders"))
            await deaf.answer()
            deaf.send(a_produce("orders", value))
            await deaf.answer()
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            before = broker.node.edge.counters.sent_bytes
            deaf.send(b"".join(a_fetch("orders", number) for number in range(answers)))
            await broker.until(lambda: broker.node.edge.counters.sent_bytes > before)
            await broker.serves()
            # The sockets' own buffers are outside our control.
            assert broker.node.edge.counters.sent_bytes - before < answers * len(value) / 2
            deaf.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert [await deaf.correlation() for _ in range(answers)] == list(range(answers))

    run_on(loop, go())


def test_requests_beyond_the_pending_limit_wait_in_the_socket(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(requests_pending_max=5)) as broker:
            peer = await broker.connect()
            peer.send(a_metadata("orders", 0))
            await peer.answer()
            peer.send(b"".join(a_produce("orders", b"x", number) for number in range(100)))
            assert [await peer.correlation() for _ in range(100)] == list(range(100))

    run_on(loop, go())


def test_a_request_larger_than_the_bytes_in_flight_still_passes(tmp_path: Path, loop: str) -> None:
    limits = LimitsConfig(inflight_bytes_max=50_000)

    async def go() -> None:
        async with running(tmp_path, limits) as broker:
            peers = [await broker.connect() for _ in range(4)]
            peers[0].send(a_metadata("orders"))
            await peers[0].answer()
            for number, peer in enumerate(peers):
                peer.send(a_produce("orders", bytes(400_000), number))
            for number, peer in enumerate(peers):
                assert await peer.correlation() == number
            assert broker.node.edge.budget.held_bytes == 0

    run_on(loop, go())


@pytest.mark.complains(
    "connection_closed reason=request_time peer=127.0.0.1: a kafka connection",
)
def test_half_received_large_requests_fill_no_memory_and_block_no_client(
    tmp_path: Path, loop: str
) -> None:
    limits = LimitsConfig(inflight_bytes_max=1 << 20, frame_ms_max=30_000)
    half = struct.pack(">ihhi", 6 << 20, 0, 9, 1) + bytes(3 << 20)

    async def go() -> None:
        async with running(tmp_path, limits) as broker:
            peers = [await broker.connect() for _ in range(10)]
            for peer in peers:
                peer.send(half)
            await broker.until(lambda: broker.node.edge.budget.waiting == 9)
            assert _held(broker) < 8 << 20  # one in its turn, one read for each of the others
            good = await broker.connect()
            good.send(a_metadata("orders"))
            await good.answer()
            await broker.pass_time(31_000)
            await broker.until(lambda: broker.node.edge.counters.open[Kind.KAFKA] <= 1)
            assert _held(broker) == 0
            assert broker.node.edge.counters.refused[Refusal.REQUEST_TIME] == 10
            good.send(a_produce("orders", bytes(900_000), 7))
            assert await good.correlation() == 7

    run_on(loop, go())


def test_a_thousand_idle_connections_do_not_disturb(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peers = [await broker.connect() for _ in range(1_000)]
            for number, peer in enumerate(peers):
                peer.send(an_api_versions(number))
            for number, peer in enumerate(peers):
                assert await peer.correlation() == number
            assert broker.node.edge.counters.open[Kind.KAFKA] == 1_000
            await broker.serves()

    run_on(loop, go())


def _held(broker: Running) -> int:
    return broker.node.edge.budget.held_bytes
