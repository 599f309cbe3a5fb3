"""When a broker may empty its copy of a log, depending on what the other replicas report."""

import pytest

from kafkaesque.broker.replication.copy_query import (
    Condition,
    CopyTold,
    CopyWord,
    obstacle,
    tell_copy,
)
from kafkaesque.log.errors import CorruptLog
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown
from kafkaesque.types import NodeId
from tests.broker.nodes import THREE
from tests.broker.partitions import PartitionNode
from tests.broker.test_damage import filled
from tests.broker.test_store import a_filled_follower, damaged

VOTERS = (1, 2, 3)
FIVE = (1, 2, 3, 4, 5)


def told(condition: Condition, voters: tuple[NodeId, ...] = VOTERS, term: int = 1) -> CopyTold:
    voters = voters if condition not in (Condition.ABSENT, Condition.WAITING) else ()
    return CopyTold(condition=condition, term=term if voters else 0, voters=voters)


WHOLE = told(Condition.WHOLE)


def test_one_copy_of_three_is_emptied_when_both_others_are_whole() -> None:
    assert obstacle(1, VOTERS, {2: WHOLE, 3: WHOLE}) is None


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (told(Condition.DAMAGED), "that of broker 3 is damaged"),
        (told(Condition.FILLING), "that of broker 3 is filling"),
        (told(Condition.WAITING), "that of broker 3 is waiting"),
        (told(Condition.ABSENT), "that of broker 3 is absent"),
        (Unknown(), "broker 3 does not answer"),
        (
            Refused(error="LinkError", text="no call of kind 8"),
            "broker 3 refuses to answer: no call",
        ),
    ],
)
def test_a_copy_is_not_emptied_while_another_is_not_whole(word: CopyWord, reason: str) -> None:
    found = obstacle(1, VOTERS, {2: WHOLE, 3: word})
    assert found is not None
    assert found.startswith("1 of 3 voters are whole, which is no majority")
    assert reason in found


def test_of_two_copies_neither_is_emptied_because_the_other_could_not_be_elected_alone() -> None:
    assert obstacle(1, (1, 2), {2: told(Condition.WHOLE, (1, 2))}) is not None


def test_one_copy_of_five_is_emptied_while_another_is_unreachable() -> None:
    whole = told(Condition.WHOLE, FIVE)
    assert obstacle(1, FIVE, {2: whole, 3: whole, 4: whole, 5: Unknown()}) is None
    assert obstacle(1, FIVE, {2: whole, 3: whole, 4: Unknown(), 5: Unknown()}) is not None


def test_copies_are_emptied_one_at_a_time_lowest_number_first() -> None:
    whole = told(Condition.WHOLE, FIVE)
    others: dict[NodeId, CopyWord] = {3: whole, 4: whole, 5: whole}
    filling, waiting = told(Condition.FILLING, FIVE), told(Condition.WAITING)
    found = obstacle(1, FIVE, {**others, 2: filling})
    assert found == "the copy of broker 2 is being filled: one at a time"
    assert obstacle(1, FIVE, {**others, 2: waiting}) is None
    found = obstacle(2, FIVE, {**others, 1: waiting})
    assert found == "the copy of broker 1 comes first: one at a time"


def test_the_voters_are_taken_from_the_replica_with_the_highest_term() -> None:
    newer = told(Condition.WHOLE, (1, 4, 5), term=7)
    words = {2: told(Condition.ABSENT), 3: told(Condition.ABSENT), 4: newer, 5: newer}
    assert obstacle(1, VOTERS, words) is None
    older = told(Condition.WHOLE, VOTERS, term=3)
    assert obstacle(1, VOTERS, {2: older, 3: older, 4: newer, 5: Unknown()}) is not None


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_copy_with_any_damage_is_not_whole() -> None:
    node = filled(alone=False)
    assert tell_copy(node.replica) == CopyTold(
        condition=Condition.WHOLE,
        term=node.replica.raft.term,
        commit=node.replica.raft.commit,
        voters=THREE.voters,
    )
    node.replica.damaged(CorruptLog(node.segment(1), 0, "noted"), 10)
    assert tell_copy(node.replica).condition is Condition.DAMAGED


def test_an_emptied_copy_is_not_whole() -> None:
    node = damaged(a_filled_follower())
    assert tell_copy(node.replica).condition is Condition.FILLING


def test_a_copy_that_is_not_open_is_absent() -> None:
    node = PartitionNode(THREE)
    node.replica.stop(CorruptLog("orders", 0, "its disk failed"))
    assert tell_copy(node.replica) == tell_copy(None) == CopyTold(condition=Condition.ABSENT)
