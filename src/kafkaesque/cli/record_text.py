"""Records as lines: how `produce` reads them and `consume` prints them.

    {"topic": …, "partition": …, "offset": …, "timestamp_ms": …, "key": …, "value": …,
     "headers": [[name, value], …]}

Keys and values are text where they are UTF-8, and `{"base64": "…"}` where they are not, so that one
command reads what the other printed without loss.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass

from kafkaesque.client.errors import ClientError

Headers = Sequence[tuple[str, bytes | None]]

_IGNORED = {"topic", "partition", "offset"}
_FIELDS = {"timestamp_ms", "key", "value", "headers"}


class InvalidRecord(ClientError):
    """A line that is not a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record to send."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A record that was read, and from where."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_line(
    line: bytes, separator: bytes | None, key: bytes | None, headers: Headers
) -> Outgoing:
    """Read a line of text: the value is all of it, or what follows the separator."""
    value = line
    if separator is not None:
        key, found, value = line.partition(separator)
        if not found:
            raise InvalidRecord(
                f"a line has no separator {separator.decode(errors='replace')!r}: {_short(line)}"
            )
    return Outgoing(key=key, value=value, headers=tuple(headers))


def read_json(line: bytes, key: bytes | None, headers: Headers) -> Outgoing:
    """Read a line of JSON; `key` overrides the line's key, and `headers` are appended."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"a line is not JSON, {error}: {_short(line)}") from None
    if not isinstance(record, dict):
        raise InvalidRecord(f"a record is a JSON object: {_short(line)}")
    unknown = record.keys() - _FIELDS - _IGNORED
    if unknown:
        raise InvalidRecord(f"a record has no field {', '.join(sorted(unknown))}: {_short(line)}")
    timestamp_ms = record.get("timestamp_ms")
    if timestamp_ms is not None and type(timestamp_ms) is not int:
        raise InvalidRecord(f"timestamp_ms is a whole number: {_short(line)}")
    return Outgoing(
        key=_bytes(record.get("key"), line) if key is None else key,
        value=_bytes(record.get("value"), line),
        headers=(*_headers(record.get("headers") or [], line), *headers),
        timestamp_ms=timestamp_ms,
    )


def to_text(record: Incoming, separator: bytes | None) -> bytes:
    """Return the value, after the key if there is a separator."""
    value = record.value or b""
    if separator is None:
        return value + b"\n"
    return (record.key or b"") + separator + value + b"\n"


def to_json(record: Incoming) -> bytes:
    """Return the whole record as one line of JSON."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": json_value(record.key),
        "value": json_value(record.value),
        "headers": [[name, json_value(value)] for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def to_hex(record: Incoming) -> bytes:
    """Return partition, offset, time, key and value, tab-separated; no key or value is `-`."""
    key, value = (
        "-" if data is None else data.hex() or '""' for data in (record.key, record.value)
    )
    where = f"{record.partition}\t{record.offset}\t{record.timestamp_ms}"
    return f"{where}\t{key}\t{value}\n".encode()


def json_value(data: bytes | None) -> object:
    """Return bytes in a form that JSON can hold; None stays None."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes(value: object, line: bytes) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            # A lone half of a surrogate pair is legal in JSON and nowhere else.
            return value.encode(errors="surrogatepass")
        case {"base64": str(text), **rest} if not rest:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                raise InvalidRecord(f"this is not base64: {_short(text.encode())}") from None
        case _:
            raise InvalidRecord(
                f'keys and values are text, null or {{"base64": …}}: {_short(line)}'
            )


def _headers(value: object, line: bytes) -> list[tuple[str, bytes | None]]:
    rows = list(value.items()) if isinstance(value, dict) else value
    found: list[tuple[str, bytes | None]] = []
    for row in rows if isinstance(rows, list) else [None]:
        match row:
            case [str(name), text] | (str(name), text):
                found.append((name, _bytes(text, line)))
            case _:
                raise InvalidRecord(f"headers are pairs of a name and a value: {_short(line)}")
    return found


def _short(line: bytes) -> str:
    text = line[:60].decode(errors="replace")
    return repr(text if len(line) <= 60 else text + "…")
