"""kafka-python's own integration tests pass, except for features that we do not have yet."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kafkaesque.testing.process import BrokerProcess
from tests.compat import suite_of_kafka_python
from tools.repository import ROOT

pytestmark = pytest.mark.compat

NOT_YET: Mapping[str, str] = {
    "test_create_describe_delete_acls": "access control lists",
    "test_create_partitions": "a broker 0: the first one is 1 here",
    "test_alter_replica_log_dirs": "a broker has one folder",
}
"""Tests that fail, and what they need."""

NOT_RUN: Mapping[str, str] = {}
"""Tests that would wait for a minute before they fail."""


@pytest.mark.long
def test_the_suite_passes_except_for_missing_features(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    folder = suite_of_kafka_python.unpacked(ROOT / ".cache" / "kafka-python")
    if folder is None:
        pytest.skip("the source distribution of kafka-python cannot be had here")
    report = tmp_path / "report.xml"
    outcomes = suite_of_kafka_python.run(folder, broker.port, report, leave_out=NOT_RUN)
    bad = {name: text for name, text in outcomes.items() if text not in ("passed", "skipped")}
    assert {name: text for name, text in bad.items() if name not in NOT_YET} == {}
    assert NOT_YET.keys() - bad.keys() == set(), "these pass now: take them off the list"
    assert sum(text == "passed" for text in outcomes.values()) >= 40
