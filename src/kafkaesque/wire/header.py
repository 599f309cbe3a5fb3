"""The headers of requests and responses.

    request v0   key:int16 version:int16 correlation_id:int32
    request v1   ... client_id:nullable string in the old form
    request v2   ... tagged fields
    answer v0    correlation_id:int32
    answer v1    ... tagged fields

A flexible version of an API has request header 2 and answer header 1, all others 1 and 0. The
exception: an answer to ApiVersions always has header 0, because a client whose version the broker
does not know must be able to read the answer.
"""

import struct
from typing import NamedTuple

from kafkaesque.errors import MalformedFrame
from kafkaesque.types import Buffer
from kafkaesque.wire.message import Api
from kafkaesque.wire.read_source import skip_tags

API_VERSIONS_KEY = 18
CONTROLLED_SHUTDOWN_KEY = 7

_START = struct.Struct(">hhi")
_LENGTH = struct.Struct(">h")
_CORRELATION = struct.Struct(">i")


class RequestHeader(NamedTuple):
    """The API, its version and the client of a request; one is made for every request."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None


def request_header_version(api: Api, version: int) -> int:
    """Return the header version of a request, even for API versions not served."""
    if api.key == CONTROLLED_SHUTDOWN_KEY and version == 0:
        return 0
    return 2 if api.flexible(version) else 1


def response_header_version(api: Api, version: int) -> int:
    """Return the header version of a response."""
    return 1 if api.flexible(version) and api.key != API_VERSIONS_KEY else 0


def request_key(data: Buffer) -> tuple[int, int]:
    """Return the API key and version of a request; they determine the header's form."""
    if len(data) < _START.size:
        raise MalformedFrame(f"{len(data)} bytes are too few for a request")
    key, version, _ = _START.unpack_from(data)
    return key, version


def decode_request_header(data: Buffer, header_version: int) -> tuple[RequestHeader, int]:
    """Return the header of a request and the position of the body."""
    size = len(data)
    try:
        key, version, correlation_id = _START.unpack_from(data)
        position, client_id = _START.size, None
        if header_version >= 1:
            client_id, position = _client_id(data, position)
        if header_version >= 2:
            # There are hardly ever any tags; see `bench/requests.py`.
            position = position + 1 if data[position] == 0 else skip_tags(data, position, size)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedFrame(f"request header version {header_version}: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id), position


def encode_request_header(header: RequestHeader, header_version: int) -> bytes:
    """Return the bytes of a header; the body follows directly."""
    out = _START.pack(header.key, header.version, header.correlation_id)
    if header_version >= 1:
        if header.client_id is None:
            out += _LENGTH.pack(-1)
        else:
            text = header.client_id.encode()
            out += _LENGTH.pack(len(text)) + text
    return out + b"\0" if header_version >= 2 else out


def decode_response_header(data: Buffer, header_version: int) -> tuple[int, int]:
    """Return the correlation id of a response and the position of the body."""
    if len(data) < _CORRELATION.size:
        raise MalformedFrame(f"{len(data)} bytes are too few for an answer")
    (correlation_id,) = _CORRELATION.unpack_from(data)
    if header_version == 0:
        return correlation_id, _CORRELATION.size
    try:
        return correlation_id, skip_tags(data, _CORRELATION.size, len(data))
    except IndexError as error:
        raise MalformedFrame(f"answer header version 1: {error}") from error


def encode_response_header(correlation_id: int, header_version: int) -> bytes:
    """Return the bytes of a response header; the body follows directly."""
    out = _CORRELATION.pack(correlation_id)
    return out + b"\0" if header_version else out


def _client_id(data: Buffer, position: int) -> tuple[str | None, int]:
    (length,) = _LENGTH.unpack_from(data, position)
    position += _LENGTH.size
    if length < 0:
        return None, position
    end = position + length
    if end > len(data):
        raise MalformedFrame("client_id is longer than the frame")
    return str(data[position:end], "utf-8"), end
