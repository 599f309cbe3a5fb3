"""Batches prepared for producing them again, and positions that follow their records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaesque.backup.fit import SEQUENCES, fit, pieces, translate
from kafkaesque.client.producers import ProducerIdentity
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch, rebuild_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import HEADER_BYTES, BatchView, Codec

pytestmark = pytest.mark.requirement("LOG-5")

PRODUCER = ProducerIdentity(producer_id=77, producer_epoch=3)


def records(first: int, count: int) -> list[Record]:
    return [
        Record(offset=first + n, timestamp_ms=1000 + n, key=b"k", value=b"v%d" % (first + n))
        for n in range(count)
    ]


@st.composite
def partitions(draw: st.DrawFn) -> tuple[list[BatchView], int, int]:
    """Draw the batches of a partition with all kinds of holes, and the range that is saved."""
    position = draw(st.integers(0, 5))
    views: list[BatchView] = []
    for _ in range(draw(st.integers(0, 5))):
        position += draw(st.integers(0, 3))
        count = draw(st.integers(1, 5))
        codec = draw(st.sampled_from([Codec.NONE, Codec.ZSTD]))
        traits = BatchTraits(is_log_append_time=draw(st.booleans()))
        all_of_them = records(position, count)
        view = BatchView(build_batch(all_of_them, codec=codec, traits=traits))
        if draw(st.booleans()):
            kept = [one for one in read_records(view) if draw(st.booleans())]
            view = BatchView(rebuild_batch(view, kept))
        views.append(view)
        position += count
    start = draw(st.integers(0, position))
    end = draw(st.integers(start, position))
    inside = [view for view in views if view.end_offset > start and view.base_offset < end]
    return inside, start, end


def restored(views: list[BatchView], start: int, end: int) -> list[Record]:
    found: list[Record] = []
    for view, new_offset, count in pieces(views, start, end):
        fitted = BatchView(fit(view, start, end, PRODUCER, new_offset))
        fitted.check()  # what a broker does with a producer's batch
        assert fitted.record_count == count
        assert fitted.base_sequence == new_offset == len(found)
        found += [replace(one, offset=one.offset + new_offset) for one in read_records(fitted)]
    return found


def wanted(views: list[BatchView], start: int, end: int) -> list[Record]:
    return [one for view in views for one in read_records(view) if start <= one.offset < end]


@given(partition=partitions())
def test_all_records_in_the_range_are_restored_dense_and_in_order(
    partition: tuple[list[BatchView], int, int],
) -> None:
    found, expected = restored(*partition), wanted(*partition)
    assert [one.offset for one in found] == list(range(len(expected)))
    assert [replace(one, offset=0) for one in found] == [replace(one, offset=0) for one in expected]


@given(partition=partitions(), positions=st.sets(st.integers(0, 40)))
def test_a_restored_position_has_the_same_records_ahead(
    partition: tuple[list[BatchView], int, int], positions: set[int]
) -> None:
    expected = wanted(*partition)
    moved = translate(*partition, positions)
    assert moved.keys() == positions
    for old, new in moved.items():
        assert new == sum(one.offset < old for one in expected)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_dense_batch_keeps_its_records_byte_for_byte(codec: Codec) -> None:
    old = ProducerStamp(producer_id=5, producer_epoch=1, base_sequence=9)
    traits = BatchTraits(is_transactional=True)
    view = BatchView(build_batch(records(50, 4), codec=codec, producer=old, traits=traits))
    fitted = BatchView(fit(view, 0, 100, PRODUCER, 12))
    assert fitted.data[HEADER_BYTES:] == view.data[HEADER_BYTES:]
    assert (fitted.producer_id, fitted.producer_epoch, fitted.base_sequence) == (77, 3, 12)
    assert fitted.codec is codec
    assert not fitted.is_transactional
    assert fitted.base_offset == 0
    fitted.check()


def test_sequences_wrap_around_to_zero() -> None:
    view = BatchView(build_batch(records(0, 1)))
    fitted = BatchView(fit(view, 0, 1, PRODUCER, SEQUENCES + 3))
    assert fitted.base_sequence == 3


def test_append_time_becomes_the_timestamp_of_each_record() -> None:
    traits = BatchTraits(is_log_append_time=True)
    view = BatchView(build_batch(records(0, 3), traits=traits, codec=Codec.GZIP))
    fitted = BatchView(fit(view, 0, 3, PRODUCER, 0))
    assert not fitted.is_log_append_time
    assert {one.timestamp_ms for one in read_records(fitted)} == {1002}
