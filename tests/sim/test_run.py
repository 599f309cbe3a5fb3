"""One seed from beginning to end: its report, and its recovery after the faults."""

import pytest

from kafkaesque.sim.checks import Violation
from kafkaesque.sim.run import check_end, make_peace, run_seed
from kafkaesque.sim.settings import Settings
from kafkaesque.sim.world import World


def a_world(writes: int = 20) -> World:
    world = World(1, Settings(nodes=3, write_pause_max=4))
    assert world.run_until(lambda: world.checks["group-0"].acknowledged >= writes, 20_000)
    return world


def test_a_report_counts_the_acknowledgements_of_clients() -> None:
    report = run_seed(1, 500, Settings())
    assert report.counts["acknowledged"] > 0


def test_a_seed_has_faults_for_the_requested_steps_and_then_recovers() -> None:
    assert run_seed(1, 300).steps > 300


def test_in_the_end_all_members_have_the_same_log() -> None:
    world = a_world()
    make_peace(world)
    check_end(world)
    ends = {machine.replicas["group-0"].log.end for machine in world.nodes.values()}
    assert len(ends) == 1


def test_a_healed_cluster_that_accepts_no_write_breaks_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkaesque.sim.run._PEACE_STEPS_MAX", 5_000)
    world = a_world()
    del world.nodes[2], world.nodes[3]
    world.run(1_000)  # what was in flight may still be acknowledged
    with pytest.raises(Violation, match="liveness: the healed cluster accepts no write"):
        make_peace(world)


def test_members_that_never_agree_break_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkaesque.sim.run._PEACE_STEPS_MAX", 5_000)
    world = a_world()
    leader = world.leader("group-0")
    assert leader is not None
    behind = next(node for node in world.nodes.values() if node.node != leader.raft.node)
    monkeypatch.setattr(behind, "deliver", lambda group, message: None)  # it receives nothing
    with pytest.raises(Violation, match=r"liveness: the members .* never agree"):
        make_peace(world)


def test_a_log_that_lost_its_end_is_detected_at_the_end() -> None:
    world = a_world()
    make_peace(world)
    log = world.nodes[2].replicas["group-0"].log
    log.segments.truncate(log.segments.batch_base(log.end_offset - 1))
    with pytest.raises(Violation):
        check_end(world)
