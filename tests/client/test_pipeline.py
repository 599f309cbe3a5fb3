"""Many batches in flight: in order, once, whatever is lost."""

from collections.abc import Iterator
from typing import Any

import pytest

from kafkaesque.client.errors import Refused, RefusedForNow
from kafkaesque.client.pipeline import WINDOW_MAX
from kafkaesque.client.topics import Place
from kafkaesque.record.build import ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.types import Buffer
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.client.clients import an_admin
from tests.client.fake_broker import HANG_UP, FakeBroker, Reply


class Log:
    """Partitions that check sequences like a broker, with planned faults."""

    def __init__(self, *trouble: object) -> None:
        self.taken: dict[Place, list[int]] = {}
        self._trouble = list(trouble)

    def __call__(self, request: ProduceRequest) -> object:
        trouble = self._trouble.pop(0) if self._trouble else None
        if isinstance(trouble, ErrorCode):
            return self._answer(request, trouble)
        said = self._answer(request, None)
        return HANG_UP if trouble is HANG_UP else said

    def _answer(self, request: ProduceRequest, code: ErrorCode | None) -> ProduceResponse:
        topics = []
        for topic in request.topic_data:
            rows = []
            for one in topic.partition_data:
                assert one.records is not None
                place = (topic.name, one.index)
                rows.append(self._row(place, BatchView(one.records).base_sequence, code))
            topics.append(TopicProduceResponse(name=topic.name, partition_responses=tuple(rows)))
        return ProduceResponse(responses=tuple(topics))

    def _row(self, place: Place, sequence: int, code: ErrorCode | None) -> PartitionProduceResponse:
        log = self.taken.setdefault(place, [])
        if code is None:
            if sequence == len(log):
                log.append(sequence)
            elif sequence > len(log):
                code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return PartitionProduceResponse(
            index=place[1], error_code=code or ErrorCode.NONE, base_offset=sequence
        )


def batches(count: int) -> Iterator[Buffer]:
    for number in range(count):
        stamp = ProducerStamp(producer_id=1, producer_epoch=0, base_sequence=number)
        record = Record(offset=0, timestamp_ms=0, key=None, value=b"v")
        yield build_batch([record], producer=stamp)


def write(reply: Reply, counts: dict[int, int]) -> dict[Place, list[int | None]]:
    told: dict[Place, list[int | None]] = {}

    def taken(place: Place, batch: Buffer, offset: int | None) -> None:
        told.setdefault(place, []).append(offset)

    sources = ((("t", index), batches(count)) for index, count in counts.items())
    with (
        FakeBroker({ProduceRequest: reply}, topics={"t": 40}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        admin.pipeline().write(sources, taken)
    return told


def test_every_partition_gets_its_batches_in_order() -> None:
    log = Log()
    counts = {0: 12, 1: 1, 2: 0, **dict.fromkeys(range(3, 40), 3)}
    told = write(log, counts)
    expected = {("t", index): list(range(count)) for index, count in counts.items() if count}
    assert log.taken == told == expected


@pytest.mark.parametrize("lost", [0, 1, 3, 6])
def test_lost_requests_and_answers_are_retried_and_written_once(lost: int) -> None:
    log = Log(*[None] * lost, HANG_UP, None, HANG_UP)
    assert write(log, {0: 20, 1: 4}) == log.taken
    assert log.taken == {("t", 0): list(range(20)), ("t", 1): list(range(4))}


def test_a_broker_that_is_not_ready_is_asked_again() -> None:
    log = Log(ErrorCode.NOT_LEADER_OR_FOLLOWER, None, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert write(log, {0: 9}) == log.taken == {("t", 0): list(range(9))}


def test_an_old_duplicate_counts_as_written() -> None:
    def reply(request: ProduceRequest) -> Any:
        return Log()._answer(request, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)

    assert write(reply, {0: 3}) == {("t", 0): [None, None, None]}


def test_a_refusal_is_raised() -> None:
    with pytest.raises(Refused, match="larger than the topic takes"):
        write(Log(None, ErrorCode.MESSAGE_TOO_LARGE), {0: 5})


def test_an_absent_broker_is_given_up_after_the_deadline() -> None:
    with pytest.raises(RefusedForNow, match="LEADER_NOT_AVAILABLE"):
        write(Log(*[ErrorCode.LEADER_NOT_AVAILABLE] * 1000), {0: 5})


def test_no_more_is_read_ahead_than_may_be_in_flight() -> None:
    read = 0
    most = 0
    done = 0

    def source() -> Iterator[Buffer]:
        nonlocal read
        for batch in batches(30):
            read += 1
            yield batch

    def taken(place: Place, batch: Buffer, offset: int | None) -> None:
        nonlocal done, most
        most = max(most, read - done)
        done += 1

    with (
        FakeBroker({ProduceRequest: Log()}, topics={"t": 1}) as broker,
        an_admin(broker.bootstrap) as admin,
    ):
        admin.pipeline().write([(("t", 0), source())], taken)
    assert done == 30
    assert 2 <= most <= WINDOW_MAX
