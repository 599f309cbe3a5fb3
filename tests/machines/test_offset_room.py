"""All offsets of a coordinator have a limit, which is checked only when deciding."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.groups.group_commands import (
    Answer,
    Commit,
    Committed,
    Identity,
    TransactionalCommit,
    TransactionEnd,
)
from kafkaesque.machines.groups.group_offsets import GroupOffsets
from kafkaesque.machines.groups.group_pending import name_bytes
from tests.machines.group_desk import GROUP, PLACE, TOPIC_ID, Desk

OTHER = (TOPIC_ID, 7)
GROUP_BYTES = GroupOffsets().bytes_to_begin(GROUP)
SMALL = GroupConfig(offsets_bytes_max=1_000 + GROUP_BYTES)


def homeless(answer: Answer | None) -> object:
    assert isinstance(answer, Committed)
    return answer.homeless


def test_offsets_beyond_the_limit_are_refused_and_existing_ones_can_move_on() -> None:
    desk = Desk(SMALL)
    assert not homeless(desk.commit(1, metadata="m" * 600))
    assert homeless(desk.commit(1, place=OTHER)) == {OTHER}
    assert homeless(desk.commit(2, metadata="m" * 745)) == {PLACE}
    assert not homeless(desk.commit(3, metadata="m" * 600))
    assert not homeless(desk.commit(4))
    assert not homeless(desk.commit(5, place=OTHER)), "there is room again"


def test_one_commit_cannot_exceed_the_limit_by_naming_many_partitions() -> None:
    desk = Desk(SMALL)
    offsets = tuple(((TOPIC_ID, number), 1, -1, "") for number in range(10))
    command = Commit(group=GROUP, generation=-1, member=Identity(member_id=""), offsets=offsets)
    asked = desk.ask(lambda g, to, now: g.commit(command, to, now))
    assert homeless(asked.answer) == {place for place, *_ in offsets[3:]}


def test_offsets_of_open_transactions_count_as_well() -> None:
    desk = Desk(GroupConfig(offsets_bytes_max=3 * (256 + name_bytes(GROUP))))
    offsets = tuple(((TOPIC_ID, number), 1, -1, "") for number in range(4))
    commit = Commit(group=GROUP, generation=-1, member=Identity(member_id=""), offsets=offsets)
    command = TransactionalCommit(commit=commit, producer_id=1)
    asked = desk.ask(lambda g, to, now: g.commit_in_transaction(command, to, now))
    assert homeless(asked.answer) == {offsets[3][0]}
    assert homeless(desk.commit(1, place=OTHER)) == {OTHER}
    desk.ask(lambda g, to, _: g.end_transaction(TransactionEnd(producer_id=1, is_commit=False), to))
    assert desk.machine.offsets_bytes == 0


def test_a_log_with_more_than_the_limit_can_still_be_read() -> None:
    large = Desk(GroupConfig())
    for number in range(20):
        large.commit(1, place=(TOPIC_ID, number))
    desk = Desk(SMALL)
    for record in large.machine.records():
        desk.machine.apply(record)
    assert len(list(desk.machine.records())) == len(list(large.machine.records()))
    assert not homeless(desk.commit(2, place=(TOPIC_ID, 3)))
    assert homeless(desk.commit(2, place=(TOPIC_ID, 99))) == {(TOPIC_ID, 99)}


def test_non_ascii_text_counts_by_its_size_in_memory() -> None:
    desk = Desk(SMALL)
    assert homeless(desk.commit(1, metadata="m" * 300 + "\N{SAUROPOD}")) == {PLACE}
    assert not homeless(desk.commit(1, metadata="m" * 150 + "\N{SAUROPOD}"))


def test_names_of_groups_count_and_are_freed_with_their_offsets() -> None:
    desk = Desk(GroupConfig(offsets_bytes_max=10_000))
    groups = [f"{number}".ljust(1_000, "n") for number in range(10)]
    refused = sum(bool(homeless(commit_of(desk, group))) for group in groups)
    assert refused == 4, "six names take more than nine thousand bytes"
    assert desk.machine.offsets_bytes <= 10_000
    for group in groups[:6]:
        desk.ask(lambda g, to, _, name=group: g.delete(name, to))  # type: ignore[misc]
    assert desk.machine.offsets_bytes == 0


def commit_of(desk: Desk, group: str, metadata: str = "") -> Answer | None:
    command = a_commit(group, metadata)
    return desk.ask(lambda g, to, now: g.commit(command, to, now)).answer


def a_commit(group: str, metadata: str) -> Commit:
    offsets = ((PLACE, 1, -1, metadata),)
    return Commit(group=group, generation=-1, member=Identity(member_id=""), offsets=offsets)


texts = st.text(alphabet=st.sampled_from("aZ~\xe4\u4e2d\U0001f995"), min_size=1, max_size=250)


@given(metadata=texts, group=texts)
def test_offsets_count_for_at_least_the_size_of_their_texts(metadata: str, group: str) -> None:
    desk = Desk(GroupConfig())
    assert not homeless(commit_of(desk, group, metadata))
    truth = sys.getsizeof(metadata) + sys.getsizeof(group)
    committed = desk.machine.offsets_bytes
    assert committed >= truth / 2 + 256
    pending = TransactionalCommit(commit=a_commit(group, metadata), producer_id=1)
    desk.ask(lambda g, to, now: g.commit_in_transaction(pending, to, now))
    assert desk.machine.offsets_bytes - committed >= truth / 2
