"""The few pages over HTTP, and the requests that are refused."""

import asyncio
from pathlib import Path

import pytest

from kafkaesque.broker.problems import Problem, ProblemKind
from kafkaesque.errors import LogError
from kafkaesque.server.edge.counters import Refusal
from kafkaesque.server.edge.limited_protocol import GuestProtocol
from kafkaesque.server.http.http import BadRequest, HttpConnection, parse
from kafkaesque.server_config import LimitsConfig
from tests.server.running import LOOPS, Running, a_metadata, a_produce, run_on, running

HOST = b"Host: broker\r\n"


def get(path: bytes, headers: bytes = HOST, method: bytes = b"GET") -> bytes:
    return method + b" " + path + b" HTTP/1.1\r\n" + headers + b"\r\n"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_is_kept_for_the_next_request(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            for _ in range(3):
                peer.send(get(b"/health"))
                assert await peer.line() == b"HTTP/1.1 200 OK\r\n"
                while await peer.line() != b"\r\n":
                    pass
                assert await peer.line() == b"ok\n"

    run_on(loop, go())


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (get(b"/nothing"), b"404"),
        (get(b"/health", method=b"POST"), b"405"),
        (get(b"/health", HOST + b"Content-Length: 5\r\n") + b"hello", b"400"),
        (get(b"/health", HOST + b"Content-Length: 0\r\nContent-Length: 5\r\n"), b"400"),
        (get(b"/health", HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), b"400"),
        (get(b"/health", HOST + b"Transfer-Encoding: identity\r\n"), b"400"),
        (get(b"/health", HOST + b"Transfer-Encoding : chunked\r\n"), b"400"),
        (get(b"/health", HOST + b"X: a\r\n folded\r\n"), b"400"),
        (get(b"/health", HOST + b"X: a\nY: b\r\n"), b"400"),
        (get(b"/health", b""), b"400"),
        (get(b"/health", HOST + HOST), b"400"),
        (b"GET /health HTTP/2\r\n\r\n", b"400"),
        (b"GET  /health HTTP/1.1\r\n\r\n", b"400"),
        (get(b"/health", HOST + b"X: " + b"a" * 8_192 + b"\r\n"), b"431"),
        (b"GET /" + b"a" * 9_000, b"431"),
    ],
)
@pytest.mark.complains(
    "connection_closed reason=request peer=*: a header is malformed",
    "connection_closed reason=request peer=*: headers of more than 8192 bytes are not accepted",
    "connection_closed reason=request peer=*: requests with a body are not accepted",
    "connection_closed reason=request peer=*: the header content-length appears twice",
    "connection_closed reason=request peer=*: the header host is missing",
    "connection_closed reason=request peer=*: the header host appears twice",
    "connection_closed reason=request peer=*: the request line is malformed",
)
def test_a_refused_request_is_answered_once_and_the_connection_closed(
    tmp_path: Path, data: bytes, status: bytes
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send(data + get(b"/health"))
            answer = await peer.rest()
            assert answer.startswith(b"HTTP/1.1 " + status)
            assert answer.count(b"HTTP/1.1") == 1
            await broker.serves()

    run_on("uvloop", go())


def test_head_is_answered_without_the_content(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send(get(b"/health", HOST + b"Connection: close\r\n", b"HEAD"))
            answer = await peer.rest()
            assert b"Content-Length: 3\r\n" in answer
            assert answer.endswith(b"\r\n\r\n")

    run_on("uvloop", go())


@pytest.mark.complains(
    "connection_closed reason=request_time peer=127.0.0.1: a http connection",
)
def test_headers_that_arrive_too_slowly_are_cut_off(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(http_head_ms_max=10_000)) as broker:
            peer = await broker.connect()
            peer.send(b"GET /health HTTP/1.1\r\n")
            for _ in range(3):
                await broker.pass_time(4_000)
                peer.send(b"X: y\r\n")
            assert await peer.rest() == b""
            assert broker.node.edge.counters.refused[Refusal.REQUEST_TIME] == 1

    run_on("uvloop", go())


class ATransport(asyncio.Transport):
    """A transport that records whether it is read from."""

    is_read = True

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


def test_a_client_that_reads_no_answers_is_not_read_from(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            transport = ATransport()
            guest = GuestProtocol(HttpConnection(broker.node.edge, {}), broker.node.edge)
            guest.connection_made(transport)
            guest.pause_writing()
            assert not transport.is_read
            guest.resume_writing()
            assert transport.is_read

    run_on("asyncio", go())


def test_a_stopping_broker_is_not_healthy(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            broker.node.edge.stopping.begin()
            peer.send(get(b"/health", HOST + b"Connection: close\r\n"))
            answer = await peer.rest()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert answer.endswith(b"the broker is stopping\n")

    run_on("uvloop", go())


async def page(broker: Running, path: bytes) -> tuple[int, str]:
    """Return the status and the content of a page."""
    peer = await broker.connect()
    peer.send(get(path, HOST + b"Connection: close\r\n"))
    head, _, content = (await peer.rest()).partition(b"\r\n\r\n")
    return int(head.split()[1]), content.decode()


def test_health_checks_distinguish_alive_from_serving(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            node, edge = broker.node, broker.node.edge

            async def ready() -> tuple[int, str]:
                assert await page(broker, b"/health/live") == (200, "ok\n")
                return await page(broker, b"/health/ready")

            assert await ready() == (200, "ok\n")
            edge.is_open = False
            assert await ready() == (503, "the broker is catching up with its cluster\n")
            edge.is_open = True
            crowded = Problem(kind=ProblemKind.CROWDED, text="nearly full")
            full = Problem(kind=ProblemKind.DISK_FULL, text="no room")
            edge.watch._lasting = {one.kind: one for one in (crowded, full)}
            assert await ready() == (503, "no room\n")
            edge.watch._lasting = {crowded.kind: crowded}
            assert await ready() == (200, "ok\n"), "clients are served all the same"
            edge.stopping.begin()
            assert await ready() == (503, "the broker is stopping\n")
            node.failure.set_result(LogError("the disk is gone"))
            assert await ready() == (503, "the broker stops: the disk is gone\n")

    run_on("uvloop", go())


@pytest.mark.parametrize("loop", LOOPS)
def test_metrics_count_what_happened(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            client, peer = await broker.connect(), await broker.connect()
            client.send(a_metadata("orders"))
            await client.answer()
            for number in range(3):
                client.send(a_produce("orders", b"x", number))
                await client.answer()
            peer.send(get(b"/metrics", HOST + b"Connection: close\r\n"))
            lines = (await peer.rest()).decode().splitlines()
            assert 'kafkaesque_requests_total{api="Produce"} 3.0' in lines
            assert 'kafkaesque_request_seconds_count{api="Produce"} 3.0' in lines
            assert 'kafkaesque_high_watermark{partition="0",topic="orders"} 3.0' in lines
            assert 'kafkaesque_topic_records{topic="orders"} 3.0' in lines
            assert 'kafkaesque_connections{kind="kafka"} 1.0' in lines
            assert "kafkaesque_partitions 4.0" in lines
            assert "kafkaesque_inflight_bytes 0.0" in lines
            assert any(line.startswith("process_resident_memory_bytes ") for line in lines)

    run_on(loop, go())


def test_health_reports_why_a_broker_ends_whatever_the_reason(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            broker.node.failure.set_result(LogError("broker 3 was removed"))
            peer.send(get(b"/health", HOST + b"Connection: close\r\n"))
            answer = await peer.rest()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert answer.rstrip().endswith(b"the broker stops: broker 3 was removed")

    run_on("uvloop", go())


def test_topics_and_partitions_beyond_the_limit_have_no_separate_lines(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(metrics_series_max=2)) as broker:
            client, peer = await broker.connect(), await broker.connect()
            for name in ("a", "b", "c"):
                client.send(a_metadata(name))
                await client.answer()
            peer.send(get(b"/metrics", HOST + b"Connection: close\r\n"))
            lines = (await peer.rest()).decode().splitlines()
            assert sum(line.startswith("kafkaesque_high_watermark{") for line in lines) == 2
            assert sum(line.startswith("kafkaesque_topic_log_bytes{") for line in lines) == 2
            assert "kafkaesque_partitions 12.0" in lines

    run_on("uvloop", go())


def test_an_old_client_is_disconnected_after_its_answer_by_default() -> None:
    assert parse(b"GET / HTTP/1.0").is_last
    assert not parse(b"GET / HTTP/1.0\r\nConnection: keep-alive").is_last
    assert not parse(b"GET /a?b HTTP/1.1\r\nHost: x").is_last


def test_a_query_is_not_part_of_the_path() -> None:
    assert parse(b"GET /a?b HTTP/1.1\r\nHost: x").path == "/a"


def test_bytes_that_are_not_text_are_a_bad_request() -> None:
    with pytest.raises(BadRequest):
        parse(b"GET /\xff HTTP/1.1\r\nHost: x")
