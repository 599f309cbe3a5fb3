"""The leaders of a queue fail: nothing that was accepted comes again, and nothing is lost."""

from tests.chaos.disks import PoweredDisk
from tests.chaos.job import QUEUE
from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage
from tests.chaos.workload import FILLER, SHARER

ROLES = (FILLER, *(3 * [SHARER]), "confluent-producer", "confluent-consumer")
ALONE = Setting(roles=ROLES)
THREE = Setting(brokers=3, roles=ROLES)
ROUNDS = 4


@scenario("B44", setting=ALONE)
def the_only_broker_of_a_queue_is_killed(stage: Stage) -> None:
    stage.work(0.5)
    stage.kill(1)
    stage.start(1)
    stage.wait_for_progress()


@scenario("B24", "B44", setting=THREE)
def the_leader_of_a_queue_is_killed_again_and_again(stage: Stage) -> None:
    for round in range(ROUNDS):
        leader = stage.leader(round, QUEUE)
        stage.kill(leader)
        stage.wait_for_progress()
        stage.start(leader)
        stage.wait_for_progress()


@scenario("B24", "B44", setting=THREE)
def the_leader_of_a_queue_is_paused(stage: Stage) -> None:
    for round in range(ROUNDS):
        leader = stage.leader(round, QUEUE)
        stage.pause(leader)
        stage.work(4)
        stage.resume(leader)
        stage.wait_for_progress()


@scenario("B24", "B44", setting=Setting(brokers=3, has_network=True, roles=ROLES))
def the_leader_of_a_queue_is_cut_off_from_the_others(stage: Stage) -> None:
    for round in range(ROUNDS):
        stage.isolate(stage.leader(round, QUEUE))
        stage.work(5)
        stage.heal()
        stage.wait_for_progress()


@scenario(
    *("B24", "B44"),
    setting=Setting(brokers=3, disk=PoweredDisk, roles=ROLES),
    needs=("mkfs.ext4", "losetup"),
)
def all_three_brokers_of_a_queue_lose_power(stage: Stage) -> None:
    for _ in range(ROUNDS - 1):
        stage.work(1)
        stage.lose_power(1, 2, 3)
        stage.start(1, 2, 3)
        stage.wait_for_progress()


@scenario("B24", "B44", setting=THREE)
def three_brokers_of_a_queue_are_restarted_in_turn(stage: Stage) -> None:
    for node in stage.brokers:
        stage.count("restart")
        stage.brokers[node].stop()
        stage.start(node)
        stage.wait_for_progress()
