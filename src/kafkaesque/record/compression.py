"""The four codecs of Kafka's batches, in the framing that Kafka's clients use, bounded.

Reading trusts nothing: the limit for a batch's unpacked size follows from its packed size before
anything is unpacked (`_allowance`), sizes declared by a frame are checked against that limit, and
the output buffer is never larger, so a frame that lies about its size gains nothing.

Framing, codec by codec:

- gzip: writes one member; reads several in a row.
- snappy: writes snappy-java's framing (a header, then blocks of 32 KiB, each after its length),
  which Java clients need; reads both that and one bare block, which librdkafka sends.
- lz4: writes one frame of *independent* blocks, because Java clients refuse linked ones (KIP-57);
  reads any frames.
- zstd: writes one frame; reads any frames.
"""

import struct
import zlib
from collections.abc import Callable
from typing import assert_never

import cramjam

from kafkaesque.record.errors import MalformedBatch, OversizedBatch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.view import Codec
from kafkaesque.types import Buffer

_GZIP_WINDOW = 31
"""The zlib setting for the largest window, with gzip's header and trailer around the data."""

_GZIP_MEMBERS_MAX = 16
"""Clients write one member. Each further one copies the rest, so many would cost a square."""

_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEADER = _SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK_BYTES = 32 << 10
_SNAPPY_LENGTH = struct.Struct(">i")

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_FAST = 1
LZ4_LEVEL = 9
"""Kafka's default (KIP-390), which means the fast mode there, too."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_LEVEL = 3
"""Kafka's default (KIP-390)."""
_GZIP_LEVEL = -1

_FIRST_BUFFER_BYTES = 64 << 10
_FIRST_BUFFER_RATIO = 4
_BUFFER_GROWTH = 4

_BUFFER_FULL = "failed to write whole buffer"
"""The text of cramjam's error for a full output buffer, and the only way to detect it."""


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Return `data` compressed at this level; with no codec, a copy of it."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            gzip_level = _GZIP_LEVEL if level is None else level
            return zlib.compress(data, level=gzip_level, wbits=_GZIP_WINDOW)
        case Codec.SNAPPY:
            return _compress_snappy(data)
        case Codec.LZ4:
            compressor = cramjam.lz4.Compressor(
                level=_LZ4_FAST if level in (None, LZ4_LEVEL) else level,
                content_checksum=False,
                block_linked=False,
            )
            compressor.compress(bytes(data))
            return bytes(compressor.finish())
        case Codec.ZSTD:
            zstd_level = _ZSTD_LEVEL if level is None else level
            return bytes(cramjam.zstd.compress(data, level=zstd_level))
        case _:
            assert_never(codec)


def decompress(codec: Codec, data: Buffer, limits: RecordLimits) -> bytes:
    """Return `data` unpacked.

    Raises only OversizedBatch if it unpacks to more than the limits allow, and MalformedBatch if it
    is not valid data of the codec. Memory stays within a few times the limit.
    """
    allowance = _allowance(len(data), limits)
    match codec:
        case Codec.NONE:
            if len(data) > limits.decompressed_bytes_max:
                raise _oversized(limits.decompressed_bytes_max)
            return bytes(data)
        case Codec.GZIP:
            return _decompress_gzip(data, allowance)
        case Codec.SNAPPY:
            return _decompress_snappy(data, allowance)
        case Codec.LZ4:
            return _decompress_frames(
                cramjam.lz4.decompress_into, data, _lz4_declared_bytes(data), allowance
            )
        case Codec.ZSTD:
            return _decompress_frames(
                cramjam.zstd.decompress_into, data, _zstd_declared_bytes(data), allowance
            )
        case _:
            assert_never(codec)


def _allowance(packed_bytes: int, limits: RecordLimits) -> int:
    by_ratio = max(packed_bytes * limits.decompression_ratio_max, limits.decompression_always_bytes)
    return min(by_ratio, limits.decompressed_bytes_max)


def _oversized(allowance: int) -> OversizedBatch:
    return OversizedBatch(f"the batch unpacks to more than the allowed {allowance} bytes")


def _decompress_gzip(data: Buffer, allowance: int) -> bytes:
    out = bytearray()
    rest: Buffer = data
    for _ in range(_GZIP_MEMBERS_MAX):
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            # One byte more than allowed distinguishes "exactly full" from "too much".
            out += member.decompress(rest, allowance - len(out) + 1)
        except zlib.error as error:
            raise MalformedBatch(f"the records are not gzip: {error}") from None
        if len(out) > allowance:
            raise _oversized(allowance)
        if not member.eof:
            raise MalformedBatch("the gzip data is cut short")
        rest = member.unused_data
        if not rest:
            return bytes(out)
    raise MalformedBatch(f"the gzip data has more than {_GZIP_MEMBERS_MAX} members")


def _compress_snappy(data: Buffer) -> bytes:
    view = memoryview(data)
    parts = [_SNAPPY_HEADER]
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_BYTES]))
        parts += (_SNAPPY_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, allowance: int) -> bytes:
    view = memoryview(data)
    # A bare block cannot start like this: the third byte would be a copy from before the start.
    blocks = _snappy_blocks(view) if view[:8] == _SNAPPY_MAGIC else [view]
    out: list[bytes] = []
    room = allowance
    try:
        for block in blocks:
            room -= cramjam.snappy.decompress_raw_len(block)
            if room < 0:
                raise _oversized(allowance)
            out.append(bytes(cramjam.snappy.decompress_raw(block)))
    except cramjam.DecompressionError as error:
        raise MalformedBatch(f"the records are not snappy: {error}") from None
    return b"".join(out)


def _snappy_blocks(view: memoryview) -> list[memoryview]:
    blocks: list[memoryview] = []
    position = 0
    # Terminates: each iteration advances by at least the four bytes of a length.
    while position < len(view):
        if view[position : position + 8] == _SNAPPY_MAGIC:
            # Skip the two version numbers after the magic: some clients write them in the wrong
            # byte order. snappy-java reads concatenated streams, so the header may come again.
            position += len(_SNAPPY_HEADER)
            continue
        start = position + _SNAPPY_LENGTH.size
        if start > len(view):
            raise MalformedBatch("the snappy data ends inside a block's length")
        (length,) = _SNAPPY_LENGTH.unpack_from(view, position)
        position = start + length
        if length < 0 or position > len(view):
            raise MalformedBatch(f"a snappy block claims {length} bytes")
        blocks.append(view[start:position])
    return blocks


def _decompress_frames(
    decompress_into: Callable[[Buffer, bytearray], int],
    data: Buffer,
    declared_bytes: int | None,
    allowance: int,
) -> bytes:
    if declared_bytes is None:
        declared_bytes = len(data) * _FIRST_BUFFER_RATIO
    elif declared_bytes > allowance:
        raise _oversized(allowance)
    size = min(allowance, max(declared_bytes, _FIRST_BUFFER_BYTES))
    # Terminates: the buffer grows each time and stops at the allowance; all iterations together
    # unpack at most a third more than the last one does.
    while True:
        out = bytearray(size)
        try:
            written = decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if _BUFFER_FULL not in str(error):
                raise MalformedBatch(f"the records cannot be decompressed: {error}") from None
        else:
            return bytes(memoryview(out)[:written])
        if size == allowance:
            raise _oversized(allowance)
        size = min(allowance, size * _BUFFER_GROWTH)


def _lz4_declared_bytes(data: Buffer) -> int | None:
    """Return the unpacked size that an lz4 frame declares, if it does."""
    head = bytes(data[:14])
    has_size = len(head) == 14 and head[:4] == _LZ4_MAGIC and head[4] & 0x08
    return int.from_bytes(head[6:14], "little") if has_size else None


def _zstd_declared_bytes(data: Buffer) -> int | None:
    """Return the unpacked size that a zstd frame declares, if it does (RFC 8878, 3.1.1.1)."""
    head = bytes(data[:18])
    if len(head) < 5 or head[:4] != _ZSTD_MAGIC:
        return None
    descriptor = head[4]
    is_single_segment = bool(descriptor & 0x20)
    window_bytes = 0 if is_single_segment else 1
    dictionary_bytes = (0, 1, 2, 4)[descriptor & 0x03]
    size_bytes = (1 if is_single_segment else 0, 2, 4, 8)[descriptor >> 6]
    start = 5 + window_bytes + dictionary_bytes
    field = head[start : start + size_bytes]
    if size_bytes == 0 or len(field) < size_bytes:
        return None
    return int.from_bytes(field, "little") + (256 if size_bytes == 2 else 0)
