"""What happens to three brokers or five: a minority may be away, and hardly anybody notices."""

from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage

THREE = Setting(brokers=3)
NETWORK = Setting(brokers=3, has_network=True)
ROUNDS = 3


@scenario("B41", "B15", "B18", "B19", "B21", "B22", "B23", setting=THREE, is_short=True)
def the_leader_of_three_is_killed(stage: Stage) -> None:
    for _ in range(ROUNDS):
        leader = stage.leader()
        stage.kill(leader)
        stage.wait_for_progress()
        stage.start(leader)
        stage.wait_for_progress()


@scenario("B24", setting=THREE)
def a_follower_of_three_is_killed(stage: Stage) -> None:
    for _ in range(ROUNDS):
        follower = stage.followers()[0]
        stage.kill(follower)
        stage.wait_for_progress()
        stage.start(follower)
        stage.wait_for_progress()


@scenario("B11", "B3", setting=THREE)
def all_three_are_killed_at_once(stage: Stage) -> None:
    for _ in range(ROUNDS):
        stage.kill(1, 2, 3)
        stage.start(3, 1, 2)
        stage.wait_for_progress()


@scenario("B17", "B18", "B19", setting=THREE)
def the_leader_of_three_stands_still(stage: Stage) -> None:
    for _ in range(ROUNDS):
        leader = stage.leader()
        stage.pause(leader)
        stage.wait_for_progress()
        stage.resume(leader)
        stage.wait_for_progress()


@scenario("B18", "B19", "B22", setting=NETWORK, needs=("ip",), is_short=True)
def the_leader_of_three_is_cut_off_from_the_others(stage: Stage) -> None:
    for _ in range(ROUNDS):
        leader = stage.leader()
        stage.fault("cut", lambda leader=leader: stage.network.isolate(leader))  # type: ignore[misc]
        stage.work(3)
        stage.network.heal()
        stage.wait_for_progress()
