"""The answers to fetches: whole committed batches, bounded, and each partition independent."""

import asyncio
import tracemalloc

import pytest

from kafkaesque.config import LogConfig
from kafkaesque.record.read import read_records
from kafkaesque.record.view import split_batches
from kafkaesque.server.handlers import fetch
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tests.server.memory_broker import MemoryBroker

LARGE = 1 << 20


def a_partition(
    place: int,
    offset: int = 0,
    *,
    bytes_max: int = LARGE,
    known_term: int = -1,
    last_term: int = -1,
) -> FetchPartition:
    return FetchPartition(
        partition=place,
        fetch_offset=offset,
        partition_max_bytes=bytes_max,
        current_leader_epoch=known_term,
        last_fetched_epoch=last_term,
    )


def a_request(
    *partitions: FetchPartition,
    wait_ms: int = 0,
    bytes_min: int = 1,
    bytes_max: int = LARGE,
    topic: str = "orders",
    topic_id: bytes = bytes(16),
    isolation_level: int = 0,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=bytes_min,
        max_bytes=bytes_max,
        isolation_level=isolation_level,
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions),),
    )


def shares(answer: FetchResponse) -> list[PartitionData]:
    return [found for topic in answer.responses for found in topic.partitions]


def values(found: PartitionData) -> list[bytes | None]:
    views = split_batches(memoryview(found.records or b""))
    return [record.value for view in views for record in read_records(view)]


def a_broker(partitions: int = 4) -> MemoryBroker:
    memory = MemoryBroker(LogConfig())
    memory.create("orders", partitions)
    return memory


def test_an_offset_within_a_batch_returns_the_whole_batch() -> None:
    memory = a_broker()
    memory.append("orders", 0, b"a", b"b", b"c")
    memory.append("orders", 0, b"d")
    (found,) = shares(memory.fetch(a_request(a_partition(0, 2))))
    assert values(found) == [b"a", b"b", b"c", b"d"]


def test_the_first_batch_is_returned_however_large_and_only_the_first() -> None:
    memory = a_broker()
    for place in range(3):
        memory.append("orders", place, bytes(1000))
    request = a_request(*(a_partition(place) for place in range(3)), bytes_max=1)
    assert [len(found.records or b"") > 1000 for found in shares(memory.fetch(request))] == [
        True,
        False,
        False,
    ]


def test_a_partition_returns_no_more_than_its_own_limit() -> None:
    memory = a_broker()
    for _ in range(5):
        memory.append("orders", 0, bytes(100))
        memory.append("orders", 1, bytes(100))
    whole = len(shares(memory.fetch(a_request(a_partition(0))))[0].records or b"")
    limit = 2 * whole // 5
    request = a_request(a_partition(0, bytes_max=limit), a_partition(1, bytes_max=limit))
    assert [len(found.records or b"") for found in shares(memory.fetch(request))] == [limit, limit]


def test_an_error_in_one_partition_does_not_affect_others() -> None:
    memory = a_broker()
    memory.append("orders", 1, b"a")
    request = a_request(a_partition(0, 99), a_partition(17), a_partition(1), wait_ms=10_000)
    wrong, missing, good = shares(memory.fetch(request))
    assert (wrong.error_code, wrong.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert values(good) == [b"a"]


def test_a_partition_named_twice_is_read_once() -> None:
    memory = a_broker()
    memory.append("orders", 0, b"a")
    assert len(shares(memory.fetch(a_request(a_partition(0), a_partition(0))))) == 1


@pytest.mark.parametrize(
    ("known_term", "code"),
    [
        (-1, ErrorCode.NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_the_clients_leader_epoch_is_checked(known_term: int, code: ErrorCode) -> None:
    memory = a_broker()
    (found,) = shares(memory.fetch(a_request(a_partition(0, known_term=known_term))))
    assert found.error_code == code


def test_a_client_with_a_diverging_log_learns_where_it_diverges() -> None:
    memory = a_broker()
    memory.append("orders", 0, b"a", b"b")
    ahead = a_partition(0, 5, last_term=1)
    same = a_partition(1, 0, last_term=1)
    departed, agreed = shares(memory.fetch(a_request(ahead, same, wait_ms=1)))
    assert (departed.error_code, departed.records) == (0, b"")
    assert (departed.diverging_epoch.epoch, departed.diverging_epoch.end_offset) == (1, 2)
    assert agreed.diverging_epoch.epoch == -1


def test_later_versions_identify_topics_by_id() -> None:
    memory = a_broker()
    topic_id = memory.create("others", 1)
    memory.append("others", 0, b"a")
    request = a_request(a_partition(0), topic="", topic_id=topic_id)
    answer = memory.fetch(request, 13)
    assert answer.responses[0].topic_id == topic_id
    assert values(shares(answer)[0]) == [b"a"]


def test_an_id_of_no_topic_is_unknown() -> None:
    request = a_request(a_partition(0), topic="", topic_id=b"x" * 16)
    (found,) = shares(a_broker().fetch(request, 13))
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_whose_partitions_still_belong_to_its_predecessor_is_inconsistent() -> None:
    memory = a_broker()
    memory.broker.delete_topic("orders", lambda _: None)
    memory.broker.create_topic("orders", 1, {}, lambda _: None)  # neither is committed yet
    topic_id = memory.broker.catalog.topics["orders"].topic_id
    request = a_request(a_partition(0), topic="", topic_id=topic_id)
    (found,) = shares(memory.fetch(request, 13))
    assert found.error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_without_transactions_read_committed_sees_everything_committed() -> None:
    memory = a_broker()
    memory.append("orders", 0, b"a")
    (found,) = shares(memory.fetch(a_request(a_partition(0), isolation_level=1)))
    assert (found.last_stable_offset, found.aborted_transactions) == (1, ())
    assert values(found) == [b"a"]


def test_a_huge_request_is_answered_within_bounds() -> None:
    memory = a_broker(70)
    for place in range(70):
        memory.append("orders", place, bytes(1_000_000))
    partitions = (a_partition(place, bytes_max=100 << 20) for place in range(10_000))
    request = a_request(*partitions, bytes_max=2**31 - 1)
    tracemalloc.start()
    answer = memory.fetch(request)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(len(found.records or b"") for found in shares(answer)) > 50 << 20
    assert peak < 70 << 20


def test_negative_limits_still_return_the_first_batch() -> None:
    memory = a_broker()
    memory.append("orders", 0, b"a")
    request = a_request(a_partition(0, bytes_max=-5), bytes_max=-1, bytes_min=-1)
    assert values(shares(memory.fetch(request))[0]) == [b"a"]


# ── waiting ──────────────────────────────────────────────────────────────────────────────────


def test_a_waiting_fetch_is_answered_when_more_arrives() -> None:
    async def go() -> None:
        memory = a_broker()
        request = a_request(a_partition(0), a_partition(1), wait_ms=60_000)
        answer = asyncio.ensure_future(fetch.handle(request, 12, memory.session))
        await asyncio.sleep(0)
        assert not answer.done()
        memory.append("orders", 1, b"a")
        found = shares(await asyncio.wait_for(answer, 10))
        assert [values(each) for each in found] == [[], [b"a"]]

    asyncio.run(go())


def test_a_fetch_with_a_high_minimum_is_not_answered_with_less_before_its_timeout() -> None:
    async def go() -> None:
        memory = a_broker()
        request = a_request(a_partition(0), wait_ms=60_000, bytes_min=10_000)
        answer = asyncio.ensure_future(fetch.handle(request, 12, memory.session))
        await asyncio.sleep(0)
        for _ in range(9):
            memory.append("orders", 0, bytes(1_000))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not answer.done()
        memory.append("orders", 0, bytes(1_000))
        (found,) = shares(await asyncio.wait_for(answer, 10))
        assert len(found.records or b"") >= 10_000

    asyncio.run(go())


def test_at_the_timeout_the_fetch_returns_what_there_is() -> None:
    async def go() -> None:
        memory = a_broker()
        memory.append("orders", 0, b"a")
        request = a_request(a_partition(0), wait_ms=20, bytes_min=10_000)
        (found,) = shares(await asyncio.wait_for(fetch.handle(request, 12, memory.session), 10))
        assert values(found) == [b"a"]

    asyncio.run(go())


def test_an_abandoned_fetch_leaves_nothing_behind() -> None:
    async def go() -> None:
        memory = a_broker()
        request = a_request(a_partition(0), wait_ms=60_000)
        answer = asyncio.ensure_future(fetch.handle(request, 12, memory.session))
        await asyncio.sleep(0)
        assert len(memory.partition("orders")._waiting) == 1
        answer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answer
        assert len(memory.partition("orders")._waiting) == 0

    asyncio.run(go())


def test_a_fetch_waiting_by_topic_id_learns_that_the_id_is_gone() -> None:
    async def go() -> FetchResponse:
        memory = MemoryBroker()
        topic_id = memory.create("orders", 1)
        request = a_request(a_partition(0), wait_ms=10_000, topic="", topic_id=topic_id)
        waiting = asyncio.ensure_future(fetch.handle(request, 13, memory.session))
        await asyncio.sleep(0)
        memory.broker.delete_topic("orders", lambda _: None)
        memory.settle()
        return await waiting

    (found,) = shares(asyncio.run(go()))
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_ID
