"""The message of PUBS, and its mapping to a record.

    {"Key": k, "Header": h, "Body": b}   is the record   key k, value b, header "Header" h

A string stands for its UTF-8 bytes, null for no value; any other JSON is kept as written, without
whitespace. Names are case-insensitive.
"""

import msgspec

from kafkaesque.gateway.text_errors import BadCommand

HEADER_NAME = "Header"
"""The name of the record header that carries `Header`."""

_FIELDS = {"key": "Key", "header": "Header", "body": "Body"}
_SHAPE = 'a message must be a JSON object such as {"Key":"k","Header":"h","Body":"b"}'
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STRING = msgspec.json.Decoder(str)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message to publish, as bytes."""

    key: bytes | None = None
    header: bytes | None = None
    body: bytes | None

    @property
    def size(self) -> int:
        """Approximate bytes that it takes in a batch."""
        return sum(len(part) for part in (self.key, self.header, self.body) if part is not None)


def parse_message(text: str) -> Message:
    """Return the message in `text`; raises BadCommand."""
    try:
        fields = _OBJECT.decode(text.encode())
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadCommand(f"{_SHAPE}; {error}") from None
    found: dict[str, bytes | None] = {}
    for name, raw in fields.items():
        field = _FIELDS.get(name.lower())
        if field is None:
            raise BadCommand(f"{_SHAPE}; it has no other fields")
        if field in found:
            raise BadCommand(f"{_SHAPE}; {field} appears twice")
        found[field] = _as_bytes(bytes(raw))
    if "Body" not in found:
        raise BadCommand(f"{_SHAPE}; only Key and Header are optional")
    return Message(key=found.get("Key"), header=found.get("Header"), body=found["Body"])


def _as_bytes(raw: bytes) -> bytes | None:
    if raw == b"null":
        return None
    if not raw.startswith(b'"'):
        return msgspec.json.format(raw, indent=-1)
    try:
        return _STRING.decode(raw).encode()
    except msgspec.DecodeError as error:
        raise BadCommand(f"{_SHAPE}; {error}") from None
