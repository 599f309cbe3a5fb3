"""A node's life cycle: its advertised address, how it stops, and what a signal does."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkaesque.errors import BadConfiguration, KafkaesqueError
from kafkaesque.node import Node, NodeSettings
from kafkaesque.wire.codec import decode
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.server.running import (
    LOOPS,
    SECONDS_MAX,
    a_fetch,
    a_metadata,
    a_produce,
    an_api_versions,
    request,
    run_on,
    running,
)


def a_long_poll(topic: str, correlation_id: int) -> bytes:
    return a_fetch(topic, correlation_id, max_wait_ms=60_000)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_clean_stop_answers_pending_requests_and_accepts_no_new_ones(
    tmp_path: Path, loop: str
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            producer, consumer, idle = [await broker.connect() for _ in range(3)]
            producer.send(a_metadata("orders"))
            await producer.answer()
            consumer.send(a_long_poll("empty", 1) + a_metadata("empty", 2))
            assert [await consumer.correlation(), await consumer.correlation()] == [1, 2]
            consumer.send(a_long_poll("empty", 3))
            await broker.serves()
            requests = a_produce("orders", b"x", 4) + a_produce("orders", b"y", 5)
            counters = broker.node.edge.counters
            before = counters.received_bytes
            producer.send(requests)
            await broker.until(lambda: counters.received_bytes - before >= len(requests))
            async with asyncio.timeout(SECONDS_MAX):
                await broker.node.stop()
            assert [await producer.correlation(), await producer.correlation()] == [4, 5]
            assert await consumer.correlation() == 3
            for peer in (producer, consumer, idle):
                assert await peer.rest() == b""
            with pytest.raises(OSError):
                await broker.connect()

    run_on(loop, go())


@pytest.mark.parametrize(
    ("advertised", "host", "port"),
    [
        ("kafka.example.org:1234", "kafka.example.org", 1234),
        ("[2001:db8::1]:99", "2001:db8::1", 99),
    ],
)
def test_an_advertised_address_replaces_the_real_one(
    tmp_path: Path, advertised: str, host: str, port: int
) -> None:
    async def go() -> None:
        async with running(tmp_path, advertised=advertised) as broker:
            peer = await broker.connect()
            peer.send(a_metadata("orders"))
            answer = decode(MetadataResponse, 9, await peer.answer(), 5)
            assert [(one.host, one.port) for one in answer.brokers] == [(host, port)]

    run_on("uvloop", go())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_over_ipv6_gets_an_address_without_brackets(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            if len(broker.node.addresses) == 1:
                pytest.skip("this machine has no ::1")
            peer = await broker.connect("::1")
            peer.send(a_metadata("orders"))
            answer = decode(MetadataResponse, 9, await peer.answer(), 5)
            assert [(one.host, one.port) for one in answer.brokers] == [("::1", broker.node.port)]

    run_on(loop, go())


@pytest.mark.parametrize("advertised", ["host", "host:", ":1", "host:x", "host:70000", "::1:9"])
def test_an_invalid_advertised_address_is_refused(tmp_path: Path, advertised: str) -> None:
    async def go() -> None:
        settings = NodeSettings(port=0, data=tmp_path, advertised=advertised)
        with pytest.raises(BadConfiguration):
            await Node(settings).start()

    run_on("asyncio", go())


def a_broker(data: Path, **variables: str) -> tuple[subprocess.Popen[str], int]:
    """Start a process that logs only warnings and errors; return it and its port."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "kafkaesque", "serve"),
            *("--listen", "127.0.0.1", "--port", "0", "--data", str(data)),
        ],
        env={**os.environ, "KAFKAESQUE_EVENTS_LEVEL": "warning", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, int(line.partition(",")[0].rpartition(":")[2])


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for its end; return the exit code and its stderr."""
    try:
        _, said = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    return process.returncode, said


def await_deaf(port: int) -> None:
    """Wait until nobody listens on a port: a broker that stops first takes no new clients."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionError:
            return
        time.sleep(0.01)
    pytest.fail("it still listens")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    process, port = a_broker(tmp_path)
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(an_api_versions())
        stream.recv(1)
        process.send_signal(number)
        assert end(process) == (0, "")


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    names = tuple(MetadataRequestTopic(name=f"{'n' * 200}{number}") for number in range(200))
    unread = request(MetadataRequest(topics=names, allow_auto_topic_creation=False), 9)
    process, port = a_broker(tmp_path, KAFKAESQUE_SERVER_STOP_MS="600000")
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.settimeout(0.5)
        with pytest.raises(TimeoutError):
            while True:  # until the broker accepts no more, because no answer is read
                stream.sendall(unread)
        process.send_signal(signal.SIGTERM)
        await_deaf(port)  # a second signal before it sees the first one would be the same one
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert end(process) == (128 + signal.SIGTERM, "")


def test_an_invalid_setting_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[server]\nprot = 1\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkaesque", "serve", "--config", str(file)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert end(process) == (
        1,
        f"kafkaesque: {file} sets server.prot, which does not exist\n",
    )


def flip_byte(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("victim", ["cluster-metadata", "journal", "identity"])
def test_a_refused_start_says_why_in_one_sentence(tmp_path: Path, victim: str) -> None:
    process, _ = a_broker(tmp_path)
    process.send_signal(signal.SIGTERM)
    assert end(process) == (0, "")
    if victim == "cluster-metadata":
        max(tmp_path.glob("cluster-metadata/*.log")).write_bytes(b"")
    else:
        data = (tmp_path / victim).read_bytes()
        flip_byte(tmp_path / victim, 15)
        if victim == "journal":  # it has two copies of its state
            flip_byte(tmp_path / victim, data.rindex(data[:8]) + 15)
    before = (tmp_path / "journal").read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkaesque", "serve", "--port", "0", "--data", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    code, said = end(process)
    assert (code, said.count("\n"), said[:12]) == (1, 1, "kafkaesque: ")
    assert "damaged" in said
    assert said.startswith(f"kafkaesque: {victim}")
    assert (tmp_path / "journal").read_bytes() == before


@pytest.mark.parametrize("loop", LOOPS)
def test_writes_outside_of_a_request_are_synced_without_a_tick(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            node = broker.node
            node._stop_timers()  # only the end of a turn can start a sync from here on
            answers: list[KafkaesqueError | None] = []
            node.broker.create_topic("orders", 1, {}, answers.append)
            await broker.until(lambda: bool(answers))
            assert answers == [None]

    run_on(loop, go())
