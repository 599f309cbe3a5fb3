"""What happens to transactions whose producers miss some answers: committed is there, once."""

from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage
from tests.chaos.workload import TRANSACTOR

ROLES = (*(3 * [TRANSACTOR]), "confluent-producer", "confluent-consumer")
SHORT = 10
LONG = 200
"""Answers that must get lost."""


def wait_for(stage: Stage, count: int) -> None:
    """Wait until so many answers got lost."""
    stage.wait_until(lambda: stage.lost_answers >= count, f"{count} answers got lost")


@scenario("B21", "B26", setting=Setting(roles=ROLES, loses_answers=True), is_short=True)
def answers_get_lost_within_transactions(stage: Stage) -> None:
    wait_for(stage, SHORT)


@scenario("B21", "B26", "B28", setting=Setting(brokers=3, roles=ROLES, loses_answers=True))
def answers_get_lost_within_transactions_of_three_while_leaders_are_killed(stage: Stage) -> None:
    while stage.lost_answers < LONG:
        wait_for(stage, min(stage.lost_answers + LONG // 4, LONG))
        leader = stage.leader()
        stage.kill(leader)
        stage.start(leader)
        stage.wait_for_progress()
