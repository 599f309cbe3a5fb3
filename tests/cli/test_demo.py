"""`kafkaesque demo`: what it shows, and that it fails when a promise is broken."""

import re
from pathlib import Path

import pytest

from kafkaesque.cli import demo_traffic
from kafkaesque.cli.demo import typed_command
from kafkaesque.cli.demo_traffic import compare
from kafkaesque.cli.main import run
from tests.complaints import WITHOUT_LEADERS

SHORT = ["demo", "--seconds", "6"]
SENT = {(0, 0): b"a", (0, 1): b"b", (1, 0): b"c"}
SEEN = [(0, 0, b"a"), (0, 1, b"b"), (1, 0, b"c")]


def row(out: str, what: str) -> int:
    """Return the number in a row of a table."""
    found = re.search(rf"{re.escape(what)}\s*[│|]\s*([\d,]+)", out)
    assert found is not None, out
    return int(found[1].replace(",", ""))


@pytest.mark.long
@WITHOUT_LEADERS
def test_the_demo_kills_a_leader_and_succeeds_without_colour(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(SHORT) == 0
    out = capsys.readouterr().out
    assert row(out, "acknowledged, before and after a kill -9") > 500
    assert row(out, "of these lost") == row(out, "there twice") == row(out, "refused") == 0
    assert re.search(r"kill -9 \d+: broker \d, which leads partitions", out)
    assert re.search(r"partition 0: broker \d leads after [\d,]+ ms", out)
    assert re.search(r"broker \d .*is down", out), "the doctor says so"
    assert "has caught up" in out
    assert "by hand" in out
    assert "\x1b" not in out


def test_acknowledged_records_read_unchanged_are_good() -> None:
    verdict = compare(SENT, SEEN)
    assert verdict.is_good
    assert verdict.acknowledged == 3


def test_a_lost_record_is_counted() -> None:
    verdict = compare(SENT, SEEN[:-1])
    assert (verdict.lost, verdict.is_good) == (1, False)


def test_a_duplicate_record_is_counted() -> None:
    verdict = compare(SENT, [*SEEN, (1, 1, b"c")])
    assert (verdict.twice, verdict.is_good) == (1, False)


def test_a_record_at_another_offset_is_counted() -> None:
    verdict = compare(SENT, [(0, 0, b"b"), (0, 1, b"a"), (1, 0, b"c")])
    assert (verdict.elsewhere, verdict.is_good) == (2, False)


def test_nothing_acknowledged_is_not_good() -> None:
    assert not compare({}, []).is_good


def test_a_reordered_record_is_counted() -> None:
    verdict = compare(SENT, SEEN, {b"a": 2, b"b": 1, b"c": 3})
    assert (verdict.reordered, verdict.is_good) == (1, False)


@pytest.mark.long
def test_the_demo_exits_with_1_when_the_broker_lost_a_record(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read_all = demo_traffic.read_all

    def read_all_but_one(bootstrap: str, count: int) -> tuple[str, list[tuple[int, int, bytes]]]:
        name, seen = read_all(bootstrap, count)
        return name, seen[1:]

    monkeypatch.setattr("kafkaesque.cli.demo.read_all", read_all_but_one)
    assert run(SHORT) == 1
    assert row(capsys.readouterr().out, "of these lost") == 1


def test_invalid_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--seed", "x"]) == 2
    assert "'x' is not a valid integer" in capsys.readouterr().err
    assert run(["demo", "7"]) == 2


def test_the_suggested_commands_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "kafkaesque-of-a-clone"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert typed_command(program) == "bin/kafkaesque-of-a-clone"
    assert typed_command(Path("bin/kafkaesque-of-a-clone")) == "bin/kafkaesque-of-a-clone"
    monkeypatch.setenv("PATH", str(program.parent))
    assert typed_command(program) == "kafkaesque-of-a-clone"
