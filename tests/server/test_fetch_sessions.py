"""Incremental answers add up to what full answers would contain."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from tests.server.memory_broker import MemoryBroker

PARTITIONS = 4
places = st.integers(0, PARTITIONS)  # the last does not exist

Told = tuple[int, int, int]


def a_request(
    offsets: dict[int, int],
    *,
    session_id: int = 0,
    epoch: int = -1,
    forgotten: tuple[int, ...] = (),
    bytes_max: int = 1 << 20,
    topic: str = "orders",
    topic_id: bytes = bytes(16),
) -> FetchRequest:
    partitions = tuple(
        FetchPartition(partition=place, fetch_offset=offset, partition_max_bytes=1 << 20)
        for place, offset in offsets.items()
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=bytes_max,
        session_id=session_id,
        session_epoch=epoch,
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions),)
        if partitions
        else (),
        forgotten_topics_data=(
            ForgottenTopic(topic=topic, topic_id=topic_id, partitions=forgotten),
        )
        if forgotten
        else (),
    )


def told(answer: FetchResponse) -> dict[int, Told]:
    """The contents of an answer for each partition, without the records."""
    return {
        found.partition_index: (found.error_code, found.high_watermark, found.log_start_offset)
        for topic in answer.responses
        for found in topic.partitions
    }


def sizes(answer: FetchResponse) -> dict[int, int]:
    return {
        found.partition_index: len(found.records or b"")
        for topic in answer.responses
        for found in topic.partitions
    }


def a_broker() -> MemoryBroker:
    memory = MemoryBroker()
    memory.create("orders", PARTITIONS)
    return memory


class Consumer(RuleBasedStateMachine):
    """One consumer with a session, and its view of each partition."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = a_broker()
        self.offsets: dict[int, int] = {0: 0, 1: 0}
        self.sent: dict[int, int] = {}
        self.believed: dict[int, Told] = {}
        self.session_id = 0
        self.epoch = 0

    @rule(place=st.integers(0, PARTITIONS - 1))
    def append(self, place: int) -> None:
        self.memory.append("orders", place, b"a", b"b")

    @rule(place=st.integers(0, PARTITIONS - 1))
    def delete(self, place: int) -> None:
        high_watermark = self.memory.partition("orders", place).high_watermark
        self.memory.delete_before("orders", place, high_watermark // 2)

    @rule(place=places, offset=st.integers(0, 10))
    def read_from(self, place: int, offset: int) -> None:
        self.offsets[place] = offset

    @rule(place=places)
    def forget(self, place: int) -> None:
        if len(self.offsets) > 1:
            self.offsets.pop(place, None)

    @rule()
    def lose_the_session(self) -> None:
        self.memory.broker.fetch_sessions.close(self.session_id)

    @rule(bytes_max=st.sampled_from([0, 200, 1 << 20]))
    def fetch(self, bytes_max: int) -> None:
        is_full = self.epoch == 0
        changed = {p: o for p, o in self.offsets.items() if is_full or self.sent.get(p) != o}
        gone = () if is_full else tuple(p for p in self.sent if p not in self.offsets)
        answer = self.memory.fetch(
            a_request(
                changed,
                session_id=self.session_id,
                epoch=self.epoch,
                forgotten=gone,
                bytes_max=bytes_max,
            )
        )
        if answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id, self.epoch, self.sent, self.believed = 0, 0, {}, {}
            return
        assert answer.error_code == 0
        assert answer.session_id != 0
        self.session_id = answer.session_id
        self.epoch += 1
        self.sent = dict(self.offsets)
        self.believed = {p: t for p, t in self.believed.items() if p in self.offsets}
        self.believed |= told(answer)
        assert self.believed == told(self.memory.fetch(a_request(self.offsets)))

    @invariant()
    def the_counters_agree(self) -> None:
        sessions = self.memory.broker.fetch_sessions
        assert sessions.partitions == (len(self.sent) if len(sessions) else 0)


Consumer.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestIncrementalAnswersSayWhatFullOnesDo: Any = Consumer.TestCase


def opened(memory: MemoryBroker, offsets: dict[int, int]) -> int:
    answer = memory.fetch(a_request(offsets, epoch=0))
    assert answer.error_code == 0
    assert set(told(answer)) == set(offsets)
    return answer.session_id


def test_an_answer_without_news_names_no_partition() -> None:
    memory = a_broker()
    session_id = opened(memory, {0: 0, 1: 0})
    answer = memory.fetch(a_request({}, session_id=session_id, epoch=1))
    assert (answer.session_id, answer.responses) == (session_id, ())


def test_a_partition_that_failed_is_included_again_when_it_works() -> None:
    memory = a_broker()
    session_id = opened(memory, {0: 3})  # beyond the end
    memory.append("orders", 0, b"a", b"b", b"c")
    answer = memory.fetch(a_request({}, session_id=session_id, epoch=1))
    assert told(answer) == {0: (0, 3, 0)}


def test_an_error_is_included_every_time() -> None:
    memory = a_broker()
    session_id = opened(memory, {0: 3})
    answer = memory.fetch(a_request({}, session_id=session_id, epoch=1))
    assert told(answer) == {0: (ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)}


def test_an_unknown_session_is_not_found() -> None:
    answer = a_broker().fetch(a_request({}, session_id=77, epoch=1))
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 17, 2**31 - 1, -2])
def test_a_wrong_epoch_is_refused_and_the_right_one_still_works(epoch: int) -> None:
    memory = a_broker()
    session_id = opened(memory, {0: 0})
    answer = memory.fetch(a_request({}, session_id=session_id, epoch=epoch))
    assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert memory.fetch(a_request({}, session_id=session_id, epoch=1)).error_code == 0


def test_the_final_epoch_closes_the_session() -> None:
    memory = a_broker()
    session_id = opened(memory, {0: 0})
    assert memory.fetch(a_request({}, session_id=session_id, epoch=-1)).session_id == 0
    assert len(memory.broker.fetch_sessions) == 0


def test_without_partitions_no_session_is_created() -> None:
    memory = a_broker()
    session_id = opened(memory, {0: 0})
    answer = memory.fetch(a_request({}, session_id=session_id, epoch=1, forgotten=(0,)))
    assert (answer.error_code, answer.session_id, answer.responses) == (0, 0, ())
    assert len(memory.broker.fetch_sessions) == 0


def test_a_session_by_names_cannot_continue_by_ids() -> None:
    memory = a_broker()
    session_id = opened(memory, {0: 0})
    answer = memory.fetch(a_request({}, session_id=session_id, epoch=1), 13)
    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_partitions_take_turns_when_one_answer_cannot_hold_all() -> None:
    memory = a_broker()
    for place in range(3):
        memory.append("orders", place, bytes(500))
    session_id = memory.fetch(a_request({0: 0, 1: 0, 2: 0}, epoch=0, bytes_max=1)).session_id
    served: list[int] = []
    for epoch in range(1, 7):
        # The consumer never moves on: without turns it would always get the same one.
        answer = memory.fetch(a_request({}, session_id=session_id, epoch=epoch, bytes_max=1))
        served += [place for place, size in sizes(answer).items() if size]
    assert served == [1, 2, 0, 1, 2, 0]
