import gzip
import struct
import tracemalloc
import zlib
from random import Random

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.record.compression import compress, decompress
from kafkaesque.record.errors import MalformedBatch, OversizedBatch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.view import Codec

LIMITS = RecordLimits()
PACKED = [codec for codec in Codec if codec is not Codec.NONE]
ZEROS = bytes(10_000_000)
SNAPPY_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def bare_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def zstd_zeros(blocks: int, declared_bytes: int | None = None) -> bytes:
    """Compress 128 KiB of zeros into each run of four bytes; the frame may declare any size."""
    run, last = 128 << 10, blocks - 1
    headers = ((run << 3) | (1 << 1) | (at == last) for at in range(blocks))
    body = b"".join(header.to_bytes(3, "little") + b"\0" for header in headers)
    descriptor = (
        b"\x00\x88" if declared_bytes is None else b"\xc0\x88" + struct.pack("<Q", declared_bytes)
    )
    return b"\x28\xb5\x2f\xfd" + descriptor + body


@pytest.mark.requirement("CORE-7")
@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=500), times=st.integers(1, 300))
def test_compressed_data_round_trips(codec: Codec, data: bytes, times: int) -> None:
    data *= times
    assert decompress(codec, compress(codec, data), LIMITS) == data


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_accepted(codec: Codec, kind: type[bytes]) -> None:
    data = Random(1).randbytes(100_000)
    assert decompress(codec, kind(compress(codec, kind(data))), LIMITS) == data


@pytest.mark.parametrize("codec", PACKED)
def test_data_that_compresses_better_than_estimated_round_trips(codec: Codec) -> None:
    data = Random(2).randbytes(1000) * 1000
    assert decompress(codec, compress(codec, data), LIMITS) == data


@pytest.mark.parametrize("codec", PACKED)
def test_data_small_enough_uncompressed_is_accepted_at_any_ratio(codec: Codec) -> None:
    data = bytes(LIMITS.decompression_always_bytes)
    assert decompress(codec, compress(codec, data), LIMITS) == data


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_is_refused_by_its_ratio_without_being_decompressed(codec: Codec) -> None:
    bomb = compress(codec, ZEROS)
    allowed = RecordLimits(decompression_ratio_max=100)
    tracemalloc.start()
    try:
        with pytest.raises(OversizedBatch):
            decompress(codec, bomb, allowed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * max(LIMITS.decompression_always_bytes, 100 * len(bomb))


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_refused_by_its_size(codec: Codec) -> None:
    data = Random(3).randbytes(5000)
    packed = compress(codec, data)
    assert decompress(codec, packed, RecordLimits(decompressed_bytes_max=5000)) == data
    with pytest.raises(OversizedBatch):
        decompress(codec, packed, RecordLimits(decompressed_bytes_max=4999))


@pytest.mark.parametrize("block", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x20\x00"])
@pytest.mark.parametrize("is_framed", [True, False])
def test_a_snappy_block_that_declares_too_much_is_refused(block: bytes, is_framed: bool) -> None:
    data = SNAPPY_HEADER + struct.pack(">i", len(block)) + block if is_framed else block
    with pytest.raises(OversizedBatch):
        decompress(Codec.SNAPPY, data, LIMITS)


def test_snappy_blocks_are_counted_together() -> None:
    block = bare_snappy(bytes(300_000))
    data = SNAPPY_HEADER + (struct.pack(">i", len(block)) + block) * 4
    with pytest.raises(OversizedBatch):
        decompress(Codec.SNAPPY, data, RecordLimits(decompression_ratio_max=1))


def test_a_zstd_frame_that_declares_too_much_is_refused() -> None:
    with pytest.raises(OversizedBatch):
        decompress(Codec.ZSTD, zstd_zeros(1, declared_bytes=1 << 40), LIMITS)


def test_a_zstd_frame_of_unknown_size_is_cut_off_at_the_limit() -> None:
    assert decompress(Codec.ZSTD, zstd_zeros(8), LIMITS) == bytes(1 << 20)
    with pytest.raises(OversizedBatch):
        decompress(Codec.ZSTD, zstd_zeros(9), LIMITS)


@pytest.mark.parametrize("declared_bytes", [0, 1, 128 << 10, 1 << 20])
def test_a_zstd_frame_gains_nothing_from_a_false_size(declared_bytes: int) -> None:
    with pytest.raises((MalformedBatch, OversizedBatch)):
        decompress(Codec.ZSTD, zstd_zeros(80, declared_bytes), LIMITS)


def test_an_lz4_frame_that_declares_too_much_is_refused() -> None:
    frame = b"\x04\x22\x4d\x18\x68\x40" + struct.pack("<Q", 1 << 40) + bytes(5)
    with pytest.raises(OversizedBatch):
        decompress(Codec.LZ4, frame, LIMITS)


@pytest.mark.parametrize("codec", PACKED)
def test_garbage_after_the_data_is_malformed(codec: Codec) -> None:
    with pytest.raises(MalformedBatch):
        decompress(codec, compress(codec, b"some records" * 9) + b"\x99garbage", LIMITS)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_consecutive_frames_are_read_as_one(codec: Codec) -> None:
    packed = compress(codec, b"first ") + compress(codec, b"second")
    assert decompress(codec, packed, LIMITS) == b"first second"


def test_endless_gzip_members_are_malformed() -> None:
    with pytest.raises(MalformedBatch):
        decompress(Codec.GZIP, compress(Codec.GZIP, b"") * 17, LIMITS)


def test_our_gzip_equals_the_standard_librarys() -> None:
    data = b"some records" * 100
    assert gzip.decompress(compress(Codec.GZIP, data)) == data
    assert decompress(Codec.GZIP, gzip.compress(data), LIMITS) == data


def test_zlib_without_gzips_header_is_malformed() -> None:
    with pytest.raises(MalformedBatch):
        decompress(Codec.GZIP, zlib.compress(b"some records"), LIMITS)


def test_snappy_is_written_in_blocks_of_32_kib_after_a_header() -> None:
    packed = compress(Codec.SNAPPY, bytes(40_000))
    first, second = bare_snappy(bytes(32_768)), bare_snappy(bytes(40_000 - 32_768))
    blocks = (struct.pack(">i", len(block)) + block for block in (first, second))
    assert packed == SNAPPY_HEADER + b"".join(blocks)


def test_a_bare_snappy_block_is_read() -> None:
    assert decompress(Codec.SNAPPY, bare_snappy(b"some records"), LIMITS) == b"some records"


def test_consecutive_snappy_streams_are_read_as_one() -> None:
    packed = compress(Codec.SNAPPY, b"first ") + compress(Codec.SNAPPY, b"second")
    assert decompress(Codec.SNAPPY, packed, LIMITS) == b"first second"


def test_snappys_versions_may_be_in_the_wrong_byte_order() -> None:
    packed = compress(Codec.SNAPPY, b"some records")
    swapped = packed[:8] + struct.pack("<ii", 1, 1) + packed[16:]
    assert decompress(Codec.SNAPPY, swapped, LIMITS) == b"some records"


@pytest.mark.parametrize("length", [-1, -(1 << 31), 2, (1 << 31) - 1])
def test_a_snappy_block_with_an_impossible_length_is_malformed(length: int) -> None:
    with pytest.raises(MalformedBatch):
        decompress(Codec.SNAPPY, SNAPPY_HEADER + struct.pack(">i", length) + b"\0", LIMITS)


def test_lz4_blocks_are_independent_as_java_clients_need_them() -> None:
    flags = compress(Codec.LZ4, bytes(200_000))[4]
    assert flags & 0x20


def test_lz4_frames_of_linked_blocks_are_read() -> None:
    data = Random(4).randbytes(1000) * 200
    linked = bytes(cramjam.lz4.compress(data))
    assert not linked[4] & 0x20
    assert decompress(Codec.LZ4, linked, LIMITS) == data
