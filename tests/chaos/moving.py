"""Brokers are added, drained, removed and replaced while clients work and other brokers die."""

from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage
from tests.complaints import WITHOUT_LEADERS

SOON = {"KAFKAESQUE_CLUSTER_PLAN_MS": "300"}
"""The interval of the cluster's planning, in ms: short, so that tests need not wait long."""
REMOVED = "link_refused peer=* reason='*broker * was removed from the cluster and its number *"
THREE = Setting(brokers=3, environment=SOON)
FOUR = Setting(brokers=4, environment=SOON)


def _remove_once_drained(stage: Stage, node: int) -> None:
    """Wait until a drained broker hosts nothing, then remove it."""
    stage.wait_until(lambda: not stage.held(node), f"broker {node} is empty")
    stage.remove(node)


@scenario("B12", "B24", setting=FOUR, is_short=True, complains=(REMOVED, *WITHOUT_LEADERS.args))
def a_partition_of_four_moves_and_its_leader_is_drained_and_removed(stage: Stage) -> None:
    leaver = stage.leader()
    stage.move(0, *(node for node in stage.brokers if node != leaver))
    stage.wait_until(lambda: "chaos-0" not in stage.held(leaver), "the partition has moved")
    stage.drain(leaver)
    stage.wait_for_progress()
    _remove_once_drained(stage, leaver)


@scenario("B12", setting=THREE)
def a_partition_of_three_moves_while_its_leader_is_killed(stage: Stage) -> None:
    leader = stage.leader()
    first, second = (node for node in stage.brokers if node != leader)
    stage.move(0, first, second)
    stage.kill(leader)
    stage.wait_until(lambda: "chaos-0" not in stage.held(leader), "the partition has moved")
    stage.start(leader)


@scenario("B12", "B24", setting=THREE)
def a_fourth_broker_gets_its_share_while_leaders_are_killed(stage: Stage) -> None:
    node = stage.add()
    for round in range(3):
        leader = stage.leader(round)
        stage.kill(leader)
        stage.wait_for_progress()
        stage.start(leader)
    stage.wait_until(lambda: len(stage.held(node)) > 1, "the fourth holds something")


@scenario("B12", "B24", setting=FOUR)
def one_of_four_is_drained_and_removed_while_leaders_are_killed(stage: Stage) -> None:
    leaver = stage.leader()
    stage.drain(leaver)
    for _ in range(2):
        other = next(node for node in stage.brokers if node not in (leaver, stage.leader(1)))
        stage.kill(other)
        stage.wait_for_progress()
        stage.start(other)
    _remove_once_drained(stage, leaver)


@scenario("B12", "B24", setting=FOUR)
def one_of_four_dies_while_it_is_drained(stage: Stage) -> None:
    leaver = stage.followers()[0]
    stage.drain(leaver)
    stage.work(0.5)
    stage.kill(leaver)
    stage.wait_for_progress()
    _remove_once_drained(stage, leaver)


@scenario("B12", "B16", "B24", setting=THREE)
def a_lost_broker_of_three_is_replaced_by_a_new_one(stage: Stage) -> None:
    lost = stage.leader()
    stage.kill(lost)
    stage.add()
    stage.drain(lost)
    other = stage.leader(1)
    stage.pause(other)
    stage.work(2)
    stage.resume(other)
    _remove_once_drained(stage, lost)


@scenario("B12", "B24", setting=FOUR)
def partitions_of_four_rotate_while_brokers_are_killed(stage: Stage) -> None:
    nodes = list(stage.brokers)
    for round in range(4):
        for partition in range(4):
            at = (round + partition) % 4
            stage.move(partition, *(nodes[(at + step) % 4] for step in range(3)))
        node = nodes[round]
        stage.kill(node)
        stage.work(1)
        stage.start(node)
        stage.wait_for_progress()
