"""Processes of three brokers end or are paused: clients tolerate the loss of a minority."""

import random

from tests.chaos.history import Outcome, Send
from tests.chaos.job import now
from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage
from tests.complaints import WITHOUT_LEADERS

THREE = Setting(brokers=3)
ROUNDS = 3
STORM_SEED = 7


@scenario(
    *("B41", "B15", "B18", "B19", "B21", "B22", "B23"),
    setting=THREE,
    is_short=True,
    complains=WITHOUT_LEADERS.args,
)
def the_leader_of_three_is_killed(stage: Stage) -> None:
    leader = stage.leader()
    stage.kill(leader)
    stage.wait_for_progress()
    stage.start(leader)


@scenario("B15", "B21", "B41", setting=THREE)
def leaders_of_three_are_killed_one_after_the_other(stage: Stage) -> None:
    for round in range(2 * ROUNDS):
        leader = stage.leader(round % 4)
        stage.kill(leader)
        stage.wait_for_progress()
        stage.start(leader)
        stage.wait_for_progress()


@scenario("B24", setting=THREE)
def followers_of_three_are_killed(stage: Stage) -> None:
    for _ in range(ROUNDS):
        follower = stage.followers()[0]
        stage.kill(follower)
        stage.wait_for_progress()
        stage.start(follower)
        stage.wait_for_progress()


@scenario("B3", "B11", setting=THREE)
def all_three_are_killed_at_once(stage: Stage) -> None:
    for _ in range(ROUNDS):
        stage.kill(1, 2, 3)
        stage.start(3, 1, 2)
        stage.wait_for_progress()


@scenario("B16", setting=THREE)
def one_of_three_starts_alone_and_serves_no_clients(stage: Stage) -> None:
    for alone in stage.brokers:
        others = [node for node in stage.brokers if node != alone]
        stage.kill(1, 2, 3)
        begun = now()
        stage.brokers[alone].launch()
        stage.work(4)
        assert stage.acknowledged_since(begun) == 0, "a minority acknowledged records"
        stage.start(*others)
        stage.brokers[alone].wait_until_it_listens()
        stage.wait_for_progress()


@scenario("B17", "B18", "B19", setting=THREE)
def the_leader_of_three_is_paused(stage: Stage) -> None:
    """Clients with default settings wait up to a minute for requests sent to it before."""
    for _ in range(ROUNDS):
        leader = stage.leader()
        stage.pause(leader)
        stage.work(4)
        stage.resume(leader)
        stage.wait_for_progress()


@scenario("B18", "B24", setting=THREE)
def two_of_three_are_paused(stage: Stage) -> None:
    for _ in range(ROUNDS):
        nodes = stage.followers()
        stage.pause(*nodes)
        stage.work(4)
        stage.resume(*nodes)
        stage.wait_for_progress()


@scenario("B24", setting=THREE)
def three_are_restarted_in_turn_and_no_send_fails(stage: Stage) -> None:
    for node in stage.brokers:
        stage.count("restart")
        stage.brokers[node].stop()
        stage.start(node)
        stage.wait_for_progress()
    _no_send_failed(stage)


@scenario("B24", setting=THREE)
def three_are_killed_in_turn_and_no_send_fails(stage: Stage) -> None:
    for node in stage.brokers:
        stage.kill(node)
        stage.start(node)
        stage.wait_for_progress()
    _no_send_failed(stage)


def _no_send_failed(stage: Stage) -> None:
    sends = [op for op in stage.workload.history() if isinstance(op, Send)]
    failed = [send for send in sends if send.outcome is not Outcome.OK]
    assert failed == [], f"sends failed, the first with {failed[0].error}"


@scenario("B11", "B15", "B21", "B24", "B41", setting=THREE)
def kills_and_pauses_come_at_random(stage: Stage) -> None:
    chance = random.Random(STORM_SEED)
    for _ in range(5 * ROUNDS):
        node = chance.choice(list(stage.brokers))
        if chance.random() < 0.5:
            stage.pause(node)
            stage.work(chance.uniform(0.1, 3))
            stage.resume(node)
        else:
            stage.kill(node)
            stage.work(chance.uniform(0, 2))
            stage.start(node)
        stage.work(chance.uniform(0, 1))


@scenario("B12", "B24", setting=THREE)
def two_more_join_three_while_leaders_are_killed(stage: Stage) -> None:
    """The catalog grows from three to five voters and must lose nothing on the way."""
    for _ in range(2):
        leader = stage.leader()
        stage.kill(leader)
        stage.add()
        stage.start(leader)
        stage.wait_for_progress()
    stage.kill(1, 2)
    stage.start(1, 2)


@scenario("B43", setting=Setting(brokers=3, has_clocks=True), needs=("cc",))
def the_clocks_of_three_jump_by_hours(stage: Stage) -> None:
    """Leadership must not depend on the time of day."""
    for seconds in (3600, -3600, 7200):
        for node, clock in stage.clocks.items():
            stage.count("clock")
            clock.jump(seconds * (node - 2))
        stage.wait_for_progress()
        stage.kill(stage.leader())
        stage.start(*(node for node in stage.brokers if not stage.brokers[node].is_running))
        stage.wait_for_progress()
