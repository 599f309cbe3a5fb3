"""The pipeline of the tutorial is short and does what the tutorial says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kafkaesque.record.record import Record
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import NOW_MS, reasons, said
from tools.repository import ROOT

pytestmark = pytest.mark.spark

PAGE = ROOT / "docs" / "tutorials" / "first-pipeline.md"
LINES_MAX = 40


def test_the_tutorials_pipeline_finds_what_the_page_says(
    spark: Any, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (lines,) = re.findall(r"<<'END'\n(.*?)\nEND", page, re.DOTALL)
    assert len(code.splitlines()) < LINES_MAX
    for topic in ("readings", "minutes", "readings-dead-letters"):
        topics.create(topic, 2)
    sent = [
        Record(offset=n, timestamp_ms=NOW_MS, key=None, value=line.encode())
        for n, line in enumerate(lines.splitlines())
    ]
    topics.put("readings", 0, sent)
    monkeypatch.chdir(tmp_path)
    exec(code.replace("localhost:9092", topics.bootstrap), {})
    found = {(row["sensor"], row["degrees"]) for row in said(topics, "minutes")}
    assert found == {("roof", 21.0), ("cellar", 11.5)}
    assert len(reasons(topics, "readings-dead-letters")) == 2
    group = topics.admin.groups.offsets("pipeline-sensors-minutes")
    assert sum(group.values()) == len(sent)
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == '["sensors"]'
