"""Replies of the text protocol: one line each, `Done` or a JSON object; only HELP has more.

{"Ok":true,"Data":[…]} carries data, {"Ok":false,"Error":"…"} an error message.
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
"""Ends with an empty line, for programs that parse it."""

_encode = msgspec.json.Encoder().encode


def data(items: Sequence[Any]) -> bytes:
    """Return the reply with these items."""
    return _encode({"Ok": True, "Data": items}) + b"\r\n"


def failure(reason: str) -> bytes:
    """Return the error reply."""
    return _encode({"Ok": False, "Error": reason}) + b"\r\n"


def pushed(record: Record, partition: int) -> bytes:
    """Return the line of a pushed record."""
    return _encode({**shown_record(record), "Partition": partition}) + b"\r\n"


def shown_record(record: Record) -> dict[str, Any]:
    """Return a record as clients see it; `Headers` only if it has other headers."""
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
    """Yield all headers but the first one named `Header`."""
    is_ours_seen = False
    for name, value in headers:
        if name == HEADER_NAME and not is_ours_seen:
            is_ours_seen = True
        else:
            yield name, _shown(value)


def _shown(value: bytes | None) -> str | dict[str, str] | None:
    """Return UTF-8 text as a string, and anything else as marked Base64."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"Base64": b64encode(value).decode()}
