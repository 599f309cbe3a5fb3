"""All offsets of a coordinator have a limit, which is checked when deciding and never later."""

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.group_commands import (
    Answer,
    Commit,
    Committed,
    Identity,
    TransactionalCommit,
)
from tests.machines.group_desk import GROUP, PLACE, TOPIC_ID, Desk

OTHER = (TOPIC_ID, 7)
SMALL = GroupConfig(offsets_bytes_max=1_000)


def homeless(answer: Answer | None) -> object:
    assert isinstance(answer, Committed)
    return answer.homeless


def test_offsets_beyond_the_limit_are_refused_and_those_that_are_kept_move_on() -> None:
    desk = Desk(SMALL)
    assert not homeless(desk.commit(1, metadata="m" * 600))
    assert homeless(desk.commit(1, place=OTHER)) == {OTHER}
    assert homeless(desk.commit(2, metadata="m" * 745)) == {PLACE}
    assert not homeless(desk.commit(3, metadata="m" * 600))
    assert not homeless(desk.commit(4))
    assert not homeless(desk.commit(5, place=OTHER)), "there is room again"


def test_one_commit_cannot_pass_the_limit_by_naming_many_partitions() -> None:
    desk = Desk(SMALL)
    offsets = tuple(((TOPIC_ID, number), 1, -1, "") for number in range(10))
    command = Commit(group=GROUP, generation=-1, member=Identity(member_id=""), offsets=offsets)
    asked = desk.ask(lambda g, to, now: g.commit(command, to, now))
    assert homeless(asked.answer) == {place for place, *_ in offsets[3:]}


def test_what_transactions_want_to_commit_counts_as_well() -> None:
    desk = Desk(SMALL)
    offsets = tuple(((TOPIC_ID, number), 1, -1, "") for number in range(4))
    commit = Commit(group=GROUP, generation=-1, member=Identity(member_id=""), offsets=offsets)
    command = TransactionalCommit(commit=commit, producer_id=1)
    asked = desk.ask(lambda g, to, now: g.commit_in_transaction(command, to, now))
    assert homeless(asked.answer) == {offsets[3][0]}
    assert homeless(desk.commit(1, place=OTHER)) == {OTHER}


def test_a_log_that_holds_more_than_the_limit_is_read_all_the_same() -> None:
    large = Desk(GroupConfig())
    for number in range(20):
        large.commit(1, place=(TOPIC_ID, number))
    desk = Desk(SMALL)
    for record in large.machine.records():
        desk.machine.apply(record)
    assert len(list(desk.machine.records())) == len(list(large.machine.records()))
    assert not homeless(desk.commit(2, place=(TOPIC_ID, 3)))
    assert homeless(desk.commit(2, place=(TOPIC_ID, 99))) == {(TOPIC_ID, 99)}
