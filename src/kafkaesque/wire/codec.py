"""Encodes and decodes messages, at every version that their API serves.

The functions that do so are generated from the declarations, once per message and version, on
first use. ADR 0009 explains why; `bench/wire.py` measures them.
"""

import struct
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from kafkaesque.errors import MalformedFrame
from kafkaesque.types import Buffer
from kafkaesque.wire import read_source, write_source
from kafkaesque.wire.errors import UnencodableMessage, UnsupportedVersion
from kafkaesque.wire.message import api_of
from kafkaesque.wire.source import Source

T = TypeVar("T")

Reader: TypeAlias = Callable[[memoryview, int, int], tuple[Any, int]]
"""Takes the frame, a position and the frame's size; returns a message and its end position."""
Writer: TypeAlias = Callable[[Any, Callable[[Buffer], None]], None]

_readers: dict[tuple[type[Any], int], Reader] = {}
_writers: dict[tuple[type[Any], int], Writer] = {}


def decode(cls: type[T], version: int, data: Buffer, start: int = 0) -> T:
    """Decode a message that takes all of `data` after `start`.

    Record batches in it are views of `data`, all else is copied. Raises MalformedFrame for bytes
    that are not such a message, UnsupportedVersion for a version that the API does not serve.
    """
    read = reader(cls, version)
    view = memoryview(data)
    value: T
    try:
        value, end = read(view, start, len(view))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedFrame(f"{cls.__name__} version {version}: {error}") from error
    if end != len(data):
        raise MalformedFrame(f"{cls.__name__} version {version}: {len(data) - end} bytes too many")
    return value


def lenient_decoder(cls: type[T], version: int) -> Callable[[memoryview, int], T]:
    """Return a fast `decode` for many requests of one kind, which ignores anything after them.

    Kafka ignores it too, and clients rely on that: librdkafka 2.16 asks for all topics with three
    extra bytes (it writes the null array of Metadata 13 in the old form).
    """
    read = reader(cls, version)

    def decode_one(data: memoryview, start: int) -> T:
        try:
            value: T = read(data, start, len(data))[0]
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise MalformedFrame(f"{cls.__name__} version {version}: {error}") from error
        return value

    return decode_one


def encode_parts(message: object, version: int) -> list[Buffer]:
    """Encode a message in pieces; record batches are passed on without a copy.

    Fields that the version lacks are omitted. Raises UnencodableMessage for a value that the
    version cannot carry, UnsupportedVersion for a version that the API does not serve.
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
    """Encode a message in one piece; raises like `encode_parts`."""
    return b"".join(encode_parts(message, version))


def reader(cls: type[Any], version: int) -> Reader:
    """Return the function that reads one message; callers want `decode`."""
    found = _readers.get((cls, version))
    if found is None:
        flexible = _flexible(cls, version)
        source = Source(read_source.NAMES)
        name = read_source.StructReader(source, version, flexible=flexible).add(cls)
        found = source.function(name, f"read {cls.__name__} version {version}")
        _readers[cls, version] = found
    return found


def writer(cls: type[Any], version: int) -> Writer:
    """Return the function that writes one message; callers want `encode`."""
    found = _writers.get((cls, version))
    if found is None:
        flexible = _flexible(cls, version)
        source = Source(write_source.NAMES)
        name = write_source.StructWriter(source, version, flexible=flexible).add(cls)
        found = source.function(name, f"write {cls.__name__} version {version}")
        _writers[cls, version] = found
    return found


def _flexible(cls: type[Any], version: int) -> bool:
    api = api_of(cls)
    if not api.serves(version):
        raise UnsupportedVersion(api.name, version, api.first, api.last)
    return api.flexible(version)
