"""Records and batches for tests, plain ones and arbitrary ones."""

import struct

from hypothesis import strategies as st

from kafkaesque.record.crc import crc32c
from kafkaesque.record.record import Record
from kafkaesque.record.view import CRC_FROM, HEADER_BYTES

GOLDEN_RECORDS = [
    Record(
        offset=1000, timestamp_ms=1_700_000_000_000, key=b"k1", value=b"v1", headers=(("h", b"x"),)
    ),
    Record(offset=1001, timestamp_ms=1_700_000_000_100, key=None, value=None),
]

GOLDEN = bytes.fromhex(
    "00000000000003e8"  # base offset 1000
    "00000048"  # 72 bytes follow
    "00000007"  # leader epoch, our term: 7
    "02"  # magic: format 2
    "6b02582a"  # CRC-32C of everything below
    "0000"  # attributes: no codec, create time, not transactional, not control
    "00000001"  # last offset delta 1
    "0000018bcfe56800"  # base timestamp 1700000000000
    "0000018bcfe56864"  # max timestamp 1700000000100
    "ffffffffffffffff"  # producer id -1: none
    "ffff"  # producer epoch -1
    "ffffffff"  # base sequence -1
    "00000002"  # 2 records
    # first record
    "1c"  # 14 bytes follow
    "00"  # attributes
    "00"  # timestamp delta 0
    "00"  # offset delta 0
    "04"  # key of 2 bytes
    "6b31"  # k1
    "04"  # value of 2 bytes
    "7631"  # v1
    "02"  # 1 header
    "02"  # its key has 1 byte
    "68"  # h
    "02"  # its value has 1 byte
    "78"  # x
    # second record
    "0e"  # 7 bytes follow
    "00"  # attributes
    "c801"  # timestamp delta 100: zigzag 200 = 1 * 128 + 72
    "02"  # offset delta 1
    "01"  # key length -1: none
    "01"  # value length -1: none
    "00"  # no headers
)

FIELDS = {
    "length": (8, ">i"),
    "magic": (16, ">b"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp_ms": (27, ">q"),
    "max_timestamp_ms": (35, ">q"),
    "record_count": (57, ">i"),
}
"""The position of a header's field and its encoding."""


def with_field(batch: bytes | bytearray, name: str, value: int) -> bytes:
    """Return the batch with one header field changed and the checksum corrected."""
    changed = bytearray(batch)
    position, kind = FIELDS[name]
    struct.pack_into(kind, changed, position, value)
    return sealed(changed)


def sealed(batch: bytes | bytearray) -> bytes:
    """Return the batch with a correct checksum."""
    changed = bytearray(batch)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[CRC_FROM:])))
    return bytes(changed)


def with_payload(batch: bytes | bytearray, payload: bytes) -> bytes:
    """Return the batch with other bytes after its header, and matching length and checksum."""
    changed = bytearray(batch[:HEADER_BYTES]) + payload
    struct.pack_into(">i", changed, 8, len(changed) - 12)
    return sealed(changed)


int64 = st.integers(-(1 << 62), 1 << 62)
maybe_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), maybe_bytes), max_size=4).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn, sizes: tuple[int, int] = (1, 8)) -> list[Record]:
    """Draw records with rising offsets, with gaps."""
    base = draw(st.integers(0, 1 << 50))
    deltas = draw(
        st.lists(st.integers(0, 1 << 20), min_size=sizes[0], max_size=sizes[1], unique=True)
    )
    return [
        Record(
            offset=base + delta,
            timestamp_ms=draw(int64),
            key=draw(maybe_bytes),
            value=draw(maybe_bytes),
            headers=draw(headers),
        )
        for delta in sorted(deltas)
    ]
