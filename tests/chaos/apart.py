"""Three brokers are cut off from each other, in both directions or in one.

The network consists of network namespaces when run as root, and of proxies otherwise.
"""

import random

from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage
from tests.complaints import WITHOUT_LEADERS

NETWORK = Setting(brokers=3, has_network=True)
ROUNDS = 3
STORM_SEED = 11


@scenario("B18", "B19", "B22", setting=NETWORK, is_short=True, complains=WITHOUT_LEADERS.args)
def the_leader_of_three_is_cut_off_from_the_others(stage: Stage) -> None:
    stage.isolate(stage.leader())
    stage.wait_for_progress()
    stage.heal()


@scenario("B18", "B19", "B22", "B23", setting=NETWORK)
def leaders_of_three_are_cut_off_from_brokers_and_clients(stage: Stage) -> None:
    """Clients with default settings wait up to a minute for an answer that never comes."""
    for round in range(ROUNDS):
        stage.isolate(stage.leader(round), also_from_clients=True)
        stage.work(5)
        stage.heal()
        stage.wait_for_progress()


@scenario("B17", "B24", setting=NETWORK)
def the_leader_of_three_receives_but_cannot_send(stage: Stage) -> None:
    for _ in range(ROUNDS):
        leader = stage.leader()
        stage.silence(leader, *(node for node in stage.brokers if node != leader))
        stage.wait_for_progress()
        stage.heal()
        stage.wait_for_progress()


@scenario("B17", "B24", setting=NETWORK)
def the_leader_of_three_sends_but_cannot_receive(stage: Stage) -> None:
    for _ in range(ROUNDS):
        leader = stage.leader()
        for node in stage.brokers:
            if node != leader:
                stage.silence(node, leader)
        stage.wait_for_progress()
        stage.heal()
        stage.wait_for_progress()


@scenario("B24", setting=NETWORK)
def two_of_three_cannot_reach_each_other(stage: Stage) -> None:
    """The third reaches both; whichever broker leads, elections must end."""
    for one, other in ((1, 2), (2, 3), (1, 3)):
        stage.split((one,), (other,))
        stage.wait_for_progress()
        stage.heal()
        stage.wait_for_progress()


@scenario("B18", "B24", setting=NETWORK)
def none_of_three_can_reach_another(stage: Stage) -> None:
    for _ in range(ROUNDS):
        stage.split((1,), (2,), (3,))
        stage.work(4)
        stage.heal()
        stage.wait_for_progress()


@scenario(
    "B2",
    "B16",
    "B18",
    setting=Setting(brokers=5, has_network=True),
)
def five_are_split_into_two_and_three(stage: Stage) -> None:
    for few in ((1, 2), (4, 5), (2, 3)):
        many = tuple(node for node in stage.brokers if node not in few)
        stage.split(few, many)
        stage.work(4)
        stage.heal()
        stage.wait_for_progress()


@scenario("B15", "B18", "B19", "B21", "B22", "B24", setting=NETWORK)
def cuts_kills_and_pauses_come_at_random(stage: Stage) -> None:
    chance = random.Random(STORM_SEED)
    for _ in range(5 * ROUNDS):
        node, other = chance.sample(list(stage.brokers), 2)
        match chance.randrange(4):
            case 0:
                stage.isolate(node, also_from_clients=chance.random() < 0.5)
            case 1:
                stage.silence(node, other)
            case 2:
                stage.kill(node)
            case _:
                stage.pause(node)
        stage.work(chance.uniform(0, 3))
        stage.heal()
        stage.resume(node)
        if not stage.brokers[node].is_running:
            stage.start(node)
        stage.work(chance.uniform(0, 1))
