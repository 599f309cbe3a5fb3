"""Offsets by time and at the ends of a partition, and the ends of terms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.server.handlers import list_offsets, offset_for_leader_epoch
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaesque.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.server.memory_broker import MemoryBroker, at_once


def ask(
    memory: MemoryBroker, timestamp: int, *, known_term: int = -1, version: int = 11, place: int = 0
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(
        partition_index=place, current_leader_epoch=known_term, timestamp=timestamp
    )
    request = ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name="orders", partitions=(asked,)),)
    )
    answer = at_once(list_offsets.handle(request, version, memory.session))
    return answer.topics[0].partitions[0]


def end_of(memory: MemoryBroker, term: int, *, known_term: int = -1) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(
        partition=0, current_leader_epoch=known_term, leader_epoch=term
    )
    request = OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderTopic(topic="orders", partitions=(asked,)),)
    )
    answer = at_once(offset_for_leader_epoch.handle(request, 2, memory.session))
    return answer.topics[0].partitions[0]


def a_broker(*times_ms: tuple[int, ...]) -> MemoryBroker:
    """A broker whose partition holds a batch for each tuple of times."""
    memory = MemoryBroker()
    memory.create("orders", 1)
    for times in times_ms:
        memory.append("orders", 0, *(b"x" for _ in times), times_ms=times)
    return memory


@pytest.mark.parametrize(
    ("timestamp", "offset", "found_ms", "term"),
    [
        (-1, 5, -1, 1),
        (-2, 1, -1, 1),
        (-3, 2, 50, 1),
        (-4, 1, -1, 1),
        (-5, -1, -1, -1),
        (-6, -1, -1, -1),
        (0, 1, 20, 1),
        (21, 2, 50, 1),
        (51, -1, -1, -1),
    ],
)
def test_every_kind_of_request(timestamp: int, offset: int, found_ms: int, term: int) -> None:
    memory = a_broker((10, 20), (50, 30), (40,))
    memory.delete_before("orders", 0, 1)
    found = ask(memory, timestamp)
    assert (found.error_code, found.offset, found.timestamp, found.leader_epoch) == (
        *(0, offset, found_ms),
        term,
    )


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_a_request_that_its_version_does_not_know_is_refused(timestamp: int, version: int) -> None:
    found = ask(a_broker((1,)), timestamp, version=version)
    assert (found.error_code, found.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


@pytest.mark.parametrize(
    ("known_term", "code"),
    [
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_the_clients_leader_epoch_is_checked(known_term: int, code: ErrorCode) -> None:
    memory = a_broker((1,))
    assert ask(memory, -1, known_term=known_term).error_code == code
    assert end_of(memory, 1, known_term=known_term).error_code == code


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.integers(0, 30), min_size=1, max_size=4).map(tuple), min_size=1, max_size=8
    ),
    deleted=st.integers(0, 10),
    timestamp=st.integers(0, 31),
)
def test_a_time_is_found_only_among_retained_records(
    batches: list[tuple[int, ...]], deleted: int, timestamp: int
) -> None:
    memory = a_broker(*batches)
    times = [time for batch in batches for time in batch]
    start = min(deleted, len(times))
    memory.delete_before("orders", 0, start)
    kept = [(offset, time) for offset, time in enumerate(times) if offset >= start]
    wanted = next(((o, t) for o, t in kept if t >= timestamp), (-1, -1))
    found = ask(memory, timestamp)
    assert (found.offset, found.timestamp) == wanted


def test_headers_with_false_times_do_not_cause_endless_searches() -> None:
    memory = a_broker()
    partition = memory.partition("orders")
    for _ in range(300):
        record = Record(offset=0, timestamp_ms=1, key=None, value=b"x")
        batch = build_batch([record])
        lie = bytearray(batch)
        lie[35:43] = (10**12).to_bytes(8, "big")
        partition.replica.propose(lie, lambda _: None)
    memory.settle()
    found = ask(memory, 500)
    assert (found.error_code, found.offset) == (0, 100)


def test_the_current_term_ends_with_the_log() -> None:
    found = end_of(a_broker((1, 2), (3,)), 1)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 1, 3)


@pytest.mark.parametrize("term", [-1, 0, 2])
def test_an_unknown_term_has_no_end(term: int) -> None:
    found = end_of(a_broker((1,)), term)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, -1, -1)
