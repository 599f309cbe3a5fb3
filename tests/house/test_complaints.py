"""Every complaint of a broker reaches the tests."""

import logging
from pathlib import Path

import pytest

from tests.complaints import Complaints


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.mark.complains("connection_closed reason=test", "slow callback")
def test_warnings_of_a_broker_in_this_process_are_collected(complaints: Complaints) -> None:
    complaints.begin()
    logging.getLogger("kafkaesque.server.edge.connection").warning(
        "connection_closed reason=%s", "test"
    )
    logging.getLogger("kafkaesque.server.edge.connection").info("link_opened")
    logging.getLogger("kafkaesque.spark.source").warning("a client's own affair")
    logging.getLogger("asyncio").error("slow callback")
    complaints.end()
    assert complaints.take() == ["connection_closed reason=test", "slow callback"]
    assert complaints.take() == []


def test_log_lines_of_a_broker_process_are_collected_once(
    complaints: Complaints, tmp_path: Path
) -> None:
    output = tmp_path / "broker.out"
    output.write_text("2026-01-01 10:00:00,000 ERROR of an earlier run\n")
    complaints.look(output)
    with output.open("a") as printing:
        printing.write("kafkaesque listens on 127.0.0.1:9092\n")
        printing.write("2026-01-01 10:00:01,000 INFO link_opened node=2\n")
        printing.write("2026-01-01 10:00:02,000 WARNING connection_closed reason=idle\n")
        printing.write("Traceback (most recent call last):\n  File ...\n")
        printing.write("2026-01-01 10:00:03,000 ERROR half a li")
    assert complaints.take() == [
        "connection_closed reason=idle",
        "Traceback (most recent call last):",
    ]
    with output.open("a") as printing:
        printing.write("ne\n")
    assert complaints.take() == ["half a line"]


def test_a_deleted_folder_is_forgotten(complaints: Complaints, tmp_path: Path) -> None:
    output = tmp_path / "broker.out"
    output.touch()
    complaints.look(output)
    output.unlink()
    assert complaints.take() == []
