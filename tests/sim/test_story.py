"""The story of the demo: short lines, and a verdict that is read from the run."""

import pytest

from kafkaesque.sim import story
from kafkaesque.sim.run import check_end
from kafkaesque.sim.story import GROUP, Verdict, count_lost, tell
from kafkaesque.sim.world import World

COLUMNS = 80


def told(seed: int) -> tuple[Verdict, list[str]]:
    lines: list[str] = []
    return tell(seed, lines.append), lines


def cut_one_log(world: World) -> None:
    """Make the end of one broker's log vanish from its segments, after all other checks."""
    check_end(world)
    log = world.nodes[2].replicas[GROUP].log
    log.segments.truncate(log.segments.batch_base(log.end_offset - 1))


def change_one_log(world: World) -> None:
    """Let clients have been promised a value that no broker holds."""
    check_end(world)
    offset, sent = world.checks[GROUP].promised[7]
    world.checks[GROUP].promised[7] = (offset, [b"something else" for _ in sent])


@pytest.mark.parametrize("seed", range(4))
def test_a_failed_leader_is_replaced_without_loss(seed: int) -> None:
    verdict, lines = told(seed)
    assert verdict.lost == 0
    assert verdict.acknowledged >= 400
    assert verdict.committed_records >= verdict.acknowledged
    assert verdict.elections >= 2
    assert f"all three hold {verdict.committed_records} records" in lines[-1]


def test_no_line_is_wider_than_a_terminal() -> None:
    _, lines = told(7)
    assert [line for line in lines if len(line) > COLUMNS] == []


def test_the_same_seed_gives_the_same_story() -> None:
    assert told(5) == told(5)
    assert told(5) != told(6)


def test_a_batch_that_one_broker_lacks_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "check_end", cut_one_log)
    verdict, lines = told(7)
    assert verdict.lost == 1
    assert "all three" not in lines[-1]


def test_a_batch_with_another_value_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "check_end", change_one_log)
    verdict, _ = told(7)
    assert verdict.lost == 1


def test_a_broker_that_is_down_has_lost_everything() -> None:
    world = World(7)
    checks = world.checks[GROUP]
    world.run_until(lambda: checks.acknowledged >= 3, 10_000)
    next(iter(world.nodes.values())).kill()
    assert count_lost(world) == len({offset for offset, _ in checks.promised})
