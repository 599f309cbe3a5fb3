"""One seed from beginning to end: what its report says, and that peace is demanded."""

import pytest

from kafkaesque.sim.checks import Violation
from kafkaesque.sim.run import check_end, make_peace, run_seed
from kafkaesque.sim.settings import Settings
from kafkaesque.sim.world import World


def a_world(writes: int = 20) -> World:
    world = World(1, Settings(nodes=3, write_pause_max=4))
    assert world.run_until(lambda: world.checks["group-0"].acknowledged >= writes, 20_000)
    return world


def test_a_report_counts_what_clients_were_told() -> None:
    report = run_seed(1, 500, Settings())
    assert report.counts["acknowledged"] > 0


def test_a_seed_is_troubled_for_the_steps_asked_and_then_has_peace() -> None:
    assert run_seed(1, 300).steps > 300


def test_in_the_end_all_members_hold_the_same() -> None:
    world = a_world()
    make_peace(world)
    check_end(world)
    ends = {machine.replicas["group-0"].log.end for machine in world.nodes.values()}
    assert len(ends) == 1


def test_a_healed_cluster_that_accepts_no_write_has_broken_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkaesque.sim.run._PEACE_STEPS_MAX", 5_000)
    world = a_world()
    del world.nodes[2], world.nodes[3]
    world.run(1_000)  # what was on its way may still be acknowledged
    with pytest.raises(Violation, match="liveness: the healed cluster accepts no write"):
        make_peace(world)


def test_members_that_do_not_come_to_agree_have_broken_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkaesque.sim.run._PEACE_STEPS_MAX", 5_000)
    world = a_world()
    leader = world.leader("group-0")
    assert leader is not None
    behind = next(node for node in world.nodes.values() if node.node != leader.raft.node)
    monkeypatch.setattr(behind, "deliver", lambda group, message: None)  # it is deaf
    with pytest.raises(Violation, match=r"liveness: the members .* never agree"):
        make_peace(world)


def test_a_log_that_lost_its_end_is_found_at_the_end() -> None:
    world = a_world()
    make_peace(world)
    log = world.nodes[2].replicas["group-0"].log
    log.segments.truncate(log.segments.batch_base(log.end_offset - 1))
    with pytest.raises(Violation):
        check_end(world)
