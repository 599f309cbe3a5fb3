"""`kafkaesque demo`: what it shows, and that it fails when a promise is broken."""

import pytest

from kafkaesque.cli import demo_traffic
from kafkaesque.cli.demo_traffic import compare
from kafkaesque.cli.main import run
from kafkaesque.sim import story
from kafkaesque.sim.checks import Violation
from kafkaesque.sim.run import check_end
from kafkaesque.sim.world import World
from tests.cli.test_sim import COLUMNS, row

FEW = ["demo", "--records", "200"]
SENT = {(0, 0): b"a", (0, 1): b"b", (1, 0): b"c"}
SEEN = [(0, 0, b"a"), (0, 1, b"b"), (1, 0, b"c")]


def test_the_demo_ends_well_within_80_columns_and_without_colour(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(FEW) == 0
    out = capsys.readouterr().out
    assert row(out, "of these lost") == 0
    assert row(out, "records acknowledged, before and after a kill -9") == 200
    assert "by hand" in out
    assert row(out, "batches acknowledged") >= 400
    assert [line for line in out.splitlines() if len(line) > COLUMNS] == []
    assert "\x1b" not in out


def test_the_demo_exits_with_1_when_an_acknowledged_record_is_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check_then_lose(world: World) -> None:
        check_end(world)
        log = world.nodes[1].replicas[story.GROUP].log
        log.segments.truncate(log.segments.batch_base(log.end_offset - 1))

    monkeypatch.setattr(story, "check_end", check_then_lose)
    assert run(FEW) == 1
    out = capsys.readouterr().out
    assert row(out.partition("A cluster, simulated")[2], "of these lost") == 1
    assert "what was acknowledged is lost" in out


def test_the_demo_exits_with_1_when_a_check_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def complain(world: World) -> None:
        raise Violation("log matching: [one] entry too many")

    monkeypatch.setattr(story, "check_end", complain)
    assert run(FEW) == 1
    assert "A promise was broken: log matching: [one] entry" in capsys.readouterr().out


def test_what_is_read_as_it_was_acknowledged_is_good() -> None:
    verdict = compare(SENT, SEEN)
    assert verdict.is_good
    assert verdict.acknowledged == 3


def test_a_record_that_is_gone_is_counted() -> None:
    verdict = compare(SENT, SEEN[:-1])
    assert (verdict.lost, verdict.is_good) == (1, False)


def test_a_record_that_is_there_twice_is_counted() -> None:
    verdict = compare(SENT, [*SEEN, (1, 1, b"c")])
    assert (verdict.twice, verdict.is_good) == (1, False)


def test_a_record_at_another_place_is_counted() -> None:
    verdict = compare(SENT, [(0, 0, b"b"), (0, 1, b"a"), (1, 0, b"c")])
    assert (verdict.elsewhere, verdict.is_good) == (2, False)


def test_nothing_acknowledged_is_not_good() -> None:
    assert not compare({}, []).is_good


def test_the_demo_exits_with_1_when_the_broker_lost_a_record(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read_all = demo_traffic.read_all

    def read_all_but_one(bootstrap: str, count: int) -> tuple[str, list[tuple[int, int, bytes]]]:
        name, seen = read_all(bootstrap, count)
        return name, seen[1:]

    monkeypatch.setattr("kafkaesque.cli.demo.read_all", read_all_but_one)
    assert run(FEW) == 1
    assert row(capsys.readouterr().out, "of these lost") == 1


def test_nonsense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--seed", "x"]) == 2
    assert "'x' is not a valid integer" in capsys.readouterr().err
    assert run(["demo", "7"]) == 2
