"""One port: the first bytes choose the protocol, on either loop."""

import asyncio
from pathlib import Path

import pytest

from kafkaesque.server.edge.counters import Kind, Refusal
from kafkaesque.server.edge.door import Door, kind_of
from tests.net.linking import linked, some_ends, until
from tests.server.running import LOOPS, an_api_versions, run_on, running


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (b"\0", Kind.KAFKA),
        (b"\1", Kind.LINK),
        (b"G", Kind.NEW),
        (b"GET", Kind.NEW),
        (b"GET /", Kind.HTTP),
        (b"HEAD /", Kind.HTTP),
        (b"GETX", Kind.TEXT),
        (b"LIST\r\n", Kind.TEXT),
        (b"h", Kind.TEXT),
        (b"CONNECT\n", Kind.TEXT),
        (b"CONNECT x", Kind.HTTP),
        (b"\xff", Kind.NEW),
        (b"\xff\xfb\x01", Kind.TEXT),
        (b"\xff\xff\xff\xff", None),
        (b"\x16\x03\x01", None),
        (b"\x7f\xff\xff\xff", None),
        (b"\xc3\xa4", None),
        (b"1", None),
        (b"\r\n", Kind.TEXT),
        (b"\n", Kind.TEXT),
    ],
)
def test_the_first_bytes_identify_the_protocol(first: bytes, kind: Kind | None) -> None:
    assert kind_of(first) is kind


@pytest.mark.parametrize("loop", LOOPS)
def test_three_protocols_share_the_port(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            kafka, http, text = [await broker.connect() for _ in range(3)]
            http.send(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            text.send(b"hello\r\n")
            kafka.send(an_api_versions(1) + an_api_versions(2))
            assert [await kafka.correlation(), await kafka.correlation()] == [1, 2]
            assert (await http.rest()).startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"unknown command hello" in await text.line()
            kafka.send(an_api_versions(3))
            assert await kafka.correlation() == 3

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
def test_clients_that_connect_before_the_broker_is_ready_wait_and_are_served(
    tmp_path: Path, loop: str
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            edge = broker.node.edge
            edge.is_open = False
            kafka, text, http = [await broker.connect() for _ in range(3)]
            kafka.send(an_api_versions(1))
            text.send(b"hello\r\n")
            http.send(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            await http.rest()  # health checks are answered at any time
            await broker.until(lambda: edge.waiting == 2)
            edge.open()
            assert await kafka.correlation() == 1
            assert b"unknown command hello" in await text.line()
            kafka.send(an_api_versions(2))
            assert await kafka.correlation() == 2

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.complains(
    "connection_closed reason=catching_up peer=127.0.0.1: a new connection",
)
def test_clients_that_disconnect_while_they_wait_are_forgotten(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            edge = broker.node.edge
            edge.is_open = False
            peer = await broker.connect()
            peer.send(an_api_versions(1))
            await broker.until(lambda: edge.waiting == 1)
            broker.clock.ms += edge.limits.first_byte_ms_max + 1
            edge.sweep()
            await broker.until(lambda: edge.waiting == 0)
            assert await peer.rest() == b""
            assert edge.counters.refused[Refusal.CATCHING_UP] == 1

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("split", [1, 2, 3])
def test_a_first_word_in_pieces_is_still_recognized(tmp_path: Path, loop: str, split: int) -> None:
    data = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send(data[:split])
            await broker.serves()
            peer.send(data[split:])
            assert (await peer.rest()).endswith(b"ok\n")

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_first_request_longer_than_the_slab_is_received_whole(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            many = b"".join(an_api_versions(number) for number in range(5_000))
            peer.send(many)
            for number in range(5_000):
                assert await peer.correlation() == number

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.complains(
    "connection_closed reason=protocol peer=*: no protocol begins with byte 22",
)
def test_an_unknown_protocol_is_closed_with_one_log_line(
    tmp_path: Path, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send(b"\x16\x03\x01")
            assert await peer.rest() == b""
            assert broker.node.edge.counters.refused[Refusal.PROTOCOL] == 1

    run_on(loop, go())
    assert [record.exc_info for record in caplog.records] == [None]


@pytest.mark.parametrize("loop", LOOPS)
def test_both_loopback_addresses_reach_the_same_port(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            for address in broker.node.addresses:
                host = address.rpartition(":")[0].strip("[]")
                peer = await broker.connect(host)
                peer.send(an_api_versions(6))
                assert await peer.correlation() == 6

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='a handshake cannot be read: Expected `array`, *",
)
def test_garbage_on_a_link_is_cut_off_with_one_log_line(
    tmp_path: Path, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send(b"\1\0\0\0\5hello")
            assert await peer.rest() == b""
            await broker.serves()

    run_on(loop, go())
    (line,) = [record.getMessage() for record in caplog.records]
    assert "a handshake cannot be read" in line


@pytest.mark.parametrize("loop", LOOPS)
def test_other_brokers_connect_to_the_same_port(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            one, two = some_ends(2)
            two.links.start()
            edge, text = broker.node.edge, broker.node._text.connection
            server = await asyncio.get_running_loop().create_server(
                lambda: Door(edge, http=broker.node._http, text=text, link=two.links.accept),
                "127.0.0.1",
            )
            two.port = server.sockets[0].getsockname()[1]
            one.links.start([two.peer()])
            await linked(one, two)
            assert one.append(2, bytes(300_000))
            await until(lambda: two.ends_of_appends() == [0])
            assert edge.counters.open[Kind.LINK] == 1
            server.close()
            await one.links.close()
            await two.links.close()
            await until(lambda: edge.counters.open[Kind.LINK] == 0)

    run_on(loop, go())
