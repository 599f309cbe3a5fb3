"""The state of a machine as bytes: the same as msgspec writes and reads, but in slices."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.broker.machine_hosting.state_codec import FORMAT, UnknownState, decoding, encoding
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.slices import whole

RECORDS = st.lists(
    st.builds(
        MachineRecord,
        st.binary(max_size=300),
        st.none() | st.binary(max_size=300) | st.just(bytes(70_000)),
    ),
    max_size=40,
)


def encoded(records: list[MachineRecord], slice_bytes: int = 1_000) -> bytes:
    return b"".join(whole(encoding(records, slice_bytes)))


def decoded(state: bytes, slice_bytes: int = 1_000) -> list[MachineRecord]:
    return [record for records in decoding(state, slice_bytes) for record in records]


@given(RECORDS, st.integers(1, 5_000))
def test_the_encoded_state_is_one_msgpack_value(records: list[MachineRecord], size: int) -> None:
    assert msgspec.msgpack.decode(encoded(records, size)) == [
        FORMAT,
        [[key, value] for key, value in records],
    ]


@given(RECORDS, st.integers(1, 5_000))
def test_a_state_encoded_by_msgspec_can_be_read(records: list[MachineRecord], size: int) -> None:
    state = msgspec.msgpack.encode([FORMAT, records])
    assert decoded(state, size) == records


@given(RECORDS, st.integers(1, 5_000))
def test_an_encoded_state_can_be_read_back(records: list[MachineRecord], size: int) -> None:
    assert decoded(encoded(records), size) == records


@given(RECORDS, st.data())
def test_a_state_that_is_truncated_or_has_trailing_bytes_is_refused(
    records: list[MachineRecord], data: st.DataObject
) -> None:
    state = encoded(records)
    cut = data.draw(st.integers(0, len(state) - 1))
    for other in (state[:cut], state + b"\x00"):
        with pytest.raises(UnknownState):
            decoded(other)


@given(st.binary(max_size=60))
def test_other_bytes_are_read_or_refused(other: bytes) -> None:
    for state in (other, bytes([0x92, FORMAT]) + other):
        try:
            decoded(state, 10)
        except UnknownState:
            continue
        assert msgspec.msgpack.decode(state)[0] == FORMAT


def test_a_later_format_is_refused() -> None:
    with pytest.raises(UnknownState, match="format"):
        decoded(msgspec.msgpack.encode([FORMAT + 1, []]))


def test_a_slice_exceeds_the_requested_size_by_one_record_at_most() -> None:
    records = [MachineRecord(b"%03d" % n, bytes(100)) for n in range(100)]
    state = encoded(records)
    assert sum(1 for _ in encoding(records, 1_000)) == pytest.approx(len(state) // 1_000, abs=2)
    assert max(map(len, decoding(state, 1_000))) <= 11
