import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.record.build import (
    NO_TIMESTAMP,
    BatchTraits,
    ProducerStamp,
    build_batch,
    rebuild_batch,
)
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import HEADER_BYTES, BatchView, Codec
from tests.record.builders import GOLDEN, GOLDEN_RECORDS, record_lists, with_field

STAMP = ProducerStamp(producer_id=9, producer_epoch=3, base_sequence=41)
codecs = st.sampled_from(Codec)


def test_the_golden_batch_is_built_byte_for_byte() -> None:
    assert build_batch(GOLDEN_RECORDS, term=7) == GOLDEN


@given(records=record_lists(), codec=codecs)
def test_a_built_batch_is_read_back(records: list[Record], codec: Codec) -> None:
    view = BatchView(build_batch(records, codec=codec))
    view.check_crc()
    assert view.codec is codec
    assert read_records(view) == records


def test_the_header_has_the_given_values() -> None:
    records = [
        Record(offset=12, timestamp_ms=500, key=None, value=b""),
        Record(offset=15, timestamp_ms=100, key=None, value=b""),
    ]
    traits = BatchTraits(is_transactional=True, is_control=True, is_log_append_time=True)
    view = BatchView(build_batch(records, base_offset=10, term=4, producer=STAMP, traits=traits))
    assert (view.base_offset, view.last_offset, view.term) == (10, 15, 4)
    assert (view.base_timestamp_ms, view.max_timestamp_ms) == (500, 500)
    assert (view.producer_id, view.producer_epoch, view.base_sequence) == (9, 3, 41)
    assert (view.is_transactional, view.is_control, view.is_log_append_time) == (True, True, True)


@pytest.mark.parametrize("trait", ["is_transactional", "is_control", "is_log_append_time"])
def test_each_attribute_sets_its_own_bit(trait: str) -> None:
    view = BatchView(build_batch(GOLDEN_RECORDS, traits=BatchTraits(**{trait: True})))
    traits = ("is_transactional", "is_control", "is_log_append_time")
    assert [name for name in traits if getattr(view, name)] == [trait]


def test_records_out_of_order_fail_an_assertion() -> None:
    with pytest.raises(AssertionError):
        build_batch(GOLDEN_RECORDS[::-1], base_offset=0)


@given(records=record_lists(), codec=codecs, data=st.data())
def test_a_rebuilt_batch_has_the_kept_records_and_the_old_header(
    records: list[Record], codec: Codec, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records)))
    kept = [record for record, keep in zip(records, chosen, strict=True) if keep]
    old = BatchView(build_batch(records, codec=codec, term=6, producer=STAMP))
    new = BatchView(rebuild_batch(old, kept))
    new.check_crc()
    assert read_records(new) == kept
    assert new.record_count == len(kept)
    assert (new.base_offset, new.last_offset, new.term) == (old.base_offset, old.last_offset, 6)
    assert (new.producer_id, new.producer_epoch, new.base_sequence) == (9, 3, 41)


def test_a_batch_rebuilt_with_all_its_records_does_not_change() -> None:
    old = build_batch(GOLDEN_RECORDS, term=6, producer=STAMP)
    assert rebuild_batch(BatchView(old), GOLDEN_RECORDS) == old


def test_the_newest_timestamp_is_that_of_the_kept_records() -> None:
    new = BatchView(rebuild_batch(BatchView(GOLDEN), GOLDEN_RECORDS[:1]))
    assert new.base_timestamp_ms == GOLDEN_RECORDS[0].timestamp_ms
    assert new.max_timestamp_ms == GOLDEN_RECORDS[0].timestamp_ms


def test_append_time_stays_whatever_is_kept() -> None:
    old = BatchView(build_batch(GOLDEN_RECORDS, traits=BatchTraits(is_log_append_time=True)))
    new = BatchView(rebuild_batch(old, read_records(old)[:1]))
    assert new.is_log_append_time
    assert new.max_timestamp_ms == old.max_timestamp_ms
    assert read_records(new) == read_records(old)[:1]


def test_an_emptied_batch_is_a_header_without_codec_and_base_timestamp() -> None:
    traits = BatchTraits(is_transactional=True)
    batch = build_batch(GOLDEN_RECORDS, codec=Codec.ZSTD, producer=STAMP, traits=traits)
    new = BatchView(rebuild_batch(BatchView(batch), []))
    new.check_crc()
    assert new.size == HEADER_BYTES
    assert new.codec is Codec.NONE
    assert new.is_transactional
    assert new.base_timestamp_ms == NO_TIMESTAMP
    assert new.max_timestamp_ms == GOLDEN_RECORDS[-1].timestamp_ms
    assert read_records(new) == []


def test_an_emptied_batch_has_no_deletion_time_for_tombstones() -> None:
    old = BatchView(with_field(GOLDEN, "attributes", 0x40))
    assert BatchView(rebuild_batch(old, [])).attributes == 0
    assert BatchView(rebuild_batch(old, GOLDEN_RECORDS[:1])).attributes == 0x40
