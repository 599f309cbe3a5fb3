"""Turns messages into bytes and back, at every version that their API serves.

The functions that do it are generated from the declarations, once per message and version, on
first use. ADR 0009 says why, `bench/wire.py` how long they take.
"""

import struct
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from kafkaesque.errors import MalformedFrame, UnencodableMessage, UnsupportedVersion
from kafkaesque.types import Buffer
from kafkaesque.wire import reading, writing
from kafkaesque.wire.message import api_of
from kafkaesque.wire.source import Source

T = TypeVar("T")

Reader: TypeAlias = Callable[[memoryview, int, int], tuple[Any, int]]
"""Takes the frame, a position and the frame's size; returns a message and the position behind."""
Writer: TypeAlias = Callable[[Any, Callable[[Buffer], None]], None]

_readers: dict[tuple[type[Any], int], Reader] = {}
_writers: dict[tuple[type[Any], int], Writer] = {}


def decode(cls: type[T], version: int, data: Buffer, start: int = 0) -> T:
    """Read a message that takes all of `data` from `start` on.

    Record batches in it are views of `data`, all else is copied. Raises MalformedFrame for bytes
    that are not such a message, UnsupportedVersion for a version that the API does not serve.
    """
    value, end = _read(cls, version, data, start)
    if end != len(data):
        raise MalformedFrame(f"{cls.__name__} version {version}: {len(data) - end} bytes too many")
    return value


def decode_leniently(cls: type[T], version: int, data: Buffer, start: int = 0) -> T:
    """Read a message as `decode` does, but look at nothing behind it; for requests.

    Kafka does not look either, and clients have come to rely on it: librdkafka 2.16 asks for all
    topics with three bytes too many (it writes the null array of Metadata 13 in the old form).
    """
    return _read(cls, version, data, start)[0]


def lenient_decoder(cls: type[T], version: int) -> Callable[[memoryview, int], T]:
    """Return what does as `decode_leniently`, for those who read many requests of one kind."""
    read = reader(cls, version)

    def decode_one(data: memoryview, start: int) -> T:
        try:
            value: T = read(data, start, len(data))[0]
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise MalformedFrame(f"{cls.__name__} version {version}: {error}") from error
        return value

    return decode_one


def _read(cls: type[T], version: int, data: Buffer, start: int) -> tuple[T, int]:
    read = reader(cls, version)
    view = memoryview(data)
    try:
        return read(view, start, len(view))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedFrame(f"{cls.__name__} version {version}: {error}") from error


def encode_parts(message: object, version: int) -> list[Buffer]:
    """Return a message's bytes in pieces; record batches are handed on without a copy.

    Fields that the version lacks are left out. Raises UnencodableMessage for a value that
    the version cannot carry, UnsupportedVersion for a version that the API does not serve.
    """
    cls = type(message)
    write = writer(cls, version)
    parts: list[Buffer] = []
    try:
        write(message, parts.append)
    except (struct.error, UnicodeEncodeError) as error:
        raise UnencodableMessage(f"{cls.__name__} version {version}: {error}") from error
    return parts


def encode(message: object, version: int) -> bytes:
    """Return a message's bytes in one piece; raises as `encode_parts` does."""
    return b"".join(encode_parts(message, version))


def reader(cls: type[Any], version: int) -> Reader:
    """Return the function that reads one message; `decode` is what callers want."""
    found = _readers.get((cls, version))
    if found is None:
        flexible = _flexible(cls, version)
        source = Source(reading.NAMES)
        name = reading.StructReader(source, version, flexible=flexible).add(cls)
        found = source.function(name, f"read {cls.__name__} version {version}")
        _readers[cls, version] = found
    return found


def writer(cls: type[Any], version: int) -> Writer:
    """Return the function that writes one message; `encode` is what callers want."""
    found = _writers.get((cls, version))
    if found is None:
        flexible = _flexible(cls, version)
        source = Source(writing.NAMES)
        name = writing.StructWriter(source, version, flexible=flexible).add(cls)
        found = source.function(name, f"write {cls.__name__} version {version}")
        _writers[cls, version] = found
    return found


def _flexible(cls: type[Any], version: int) -> bool:
    api = api_of(cls)
    if not api.serves(version):
        raise UnsupportedVersion(api.name, version, api.first, api.last)
    return api.flexible(version)
