"""The log of `kafkaesque serve`, as a log collector reads it."""

import json
from pathlib import Path

from kafkaesque.testing.process import BrokerProcess
from tests.testing.test_repair import until


def test_with_json_logging_all_output_of_a_broker_is_json(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path / "data", environment={"KAFKAESQUE_EVENTS_FORMAT": "json"})
    process.launch()
    until(lambda: "kafkaesque listens on" in process.said(), "it does not start")
    assert process.stop() == 0
    lines = [json.loads(line) for line in process.said().splitlines()]
    assert all({"time", "level"} <= line.keys() for line in lines)
    assert "leader_elected" in [line.get("event") for line in lines]
