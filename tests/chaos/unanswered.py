"""Transactions whose producers miss some answers: committed records are there, once."""

from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage
from tests.chaos.workload import TRANSACTOR

ROLES = (*(3 * [TRANSACTOR]), "confluent-producer", "confluent-consumer")
ALONE = Setting(roles=ROLES, answers_lost_min=10)
THREE = Setting(brokers=3, roles=ROLES, answers_lost_min=200)
KILLS = 4
SECONDS_MAX = 600.0
"""How long it may take to lose so many answers: clients wait long before they retry."""


def wait_for(stage: Stage, count: int) -> None:
    """Wait until so many answers have been lost."""
    stage.wait_until(lambda: stage.lost_answers >= count, f"{count} answers got lost", SECONDS_MAX)


@scenario("B21", "B26", setting=ALONE, is_short=True)
def answers_get_lost_within_transactions(stage: Stage) -> None:
    wait_for(stage, ALONE.answers_lost_min)


@scenario("B21", "B26", "B28", setting=THREE)
def answers_get_lost_within_transactions_of_three_while_leaders_are_killed(stage: Stage) -> None:
    for round in range(1, KILLS + 1):
        wait_for(stage, round * THREE.answers_lost_min // KILLS)
        leader = stage.leader()
        stage.kill(leader)
        stage.start(leader)
        stage.wait_for_progress()
