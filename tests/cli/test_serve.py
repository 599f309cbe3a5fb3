"""The log of `kafkaesque serve`, as a log collector reads it."""

import json
import socket
from pathlib import Path

from kafkaesque.testing.process import HOST, BrokerProcess
from tests.testing.test_repair import until


def test_with_json_logging_all_output_of_a_broker_is_json(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path / "data", environment={"KAFKAESQUE_EVENTS_FORMAT": "json"})
    process.launch()
    until(lambda: "kafkaesque listens on" in process.said(), "it does not start")
    with socket.create_connection((HOST, process.port), timeout=10) as client:
        client.sendall(b"\xff\xff\xff\xff")  # no length of a request
        assert client.recv(1) == b""
    assert process.stop() == 0
    lines = [json.loads(line) for line in process.said().splitlines()]
    assert all({"time", "level"} <= line.keys() for line in lines)
    assert "connection_closed" in [line.get("event") for line in lines]
