"""The answers of the text protocol: each is one line, `Done` or a JSON object; HELP alone has more.

{"Ok":true,"Data":[…]} carries data, {"Ok":false,"Error":"…"} says in a sentence what went wrong.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kafkaesque.gateway.text_commands import HELP_LINES
from kafkaesque.gateway.text_message import HEADER_NAME
from kafkaesque.record.record import Record

DONE = b"Done\r\n"
BYE = b"Bye\r\n"
HELP = "".join(f"{line}\r\n" for line in (*HELP_LINES, "")).encode()
"""An empty line ends it, for programs that ask."""

_encode = msgspec.json.Encoder().encode


def data(items: Sequence[Any]) -> bytes:
    """Return the answer that carries these items."""
    return _encode({"Ok": True, "Data": items}) + b"\r\n"


def failure(reason: str) -> bytes:
    """Return the answer that says what went wrong."""
    return _encode({"Ok": False, "Error": reason}) + b"\r\n"


def pushed(record: Record, partition: int) -> bytes:
    """Return the line of a record that is pushed."""
    return _encode({**shown_record(record), "Partition": partition}) + b"\r\n"


def shown_record(record: Record) -> dict[str, Any]:
    """Return a record as clients see it; headers of other names only if there are any."""
    own = next((value for name, value in record.headers if name == HEADER_NAME), None)
    fields = {
        "Header": _shown(own),
        "Body": _shown(record.value),
        "Key": _shown(record.key),
        "Offset": record.offset,
    }
    others = list(_others(record.headers))
    return {**fields, "Headers": others} if others else fields


def _others(headers: Iterable[tuple[str, bytes | None]]) -> Iterable[tuple[str, Any]]:
    """Yield all headers but the first of our own name."""
    is_ours_seen = False
    for name, value in headers:
        if name == HEADER_NAME and not is_ours_seen:
            is_ours_seen = True
        else:
            yield name, _shown(value)


def _shown(value: bytes | None) -> str | dict[str, str] | None:
    """Return text as a string; what is no text is marked as what it is written in instead."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"Base64": b64encode(value).decode()}
