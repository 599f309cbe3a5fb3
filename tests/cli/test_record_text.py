"""Records as lines: printed records can be read back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.cli.record_text import (
    Incoming,
    InvalidRecord,
    Outgoing,
    read_json,
    read_line,
    to_hex,
    to_json,
    to_text,
)

DATA = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), DATA), max_size=3).map(tuple)


def a_record(key: bytes | None = b"k", value: bytes | None = b"v") -> Incoming:
    return Incoming(
        topic="t", partition=1, offset=2, timestamp_ms=3, key=key, value=value, headers=()
    )


@given(DATA, DATA, HEADERS)
def test_records_printed_as_json_are_read_back_without_loss(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    record = Incoming(
        topic="t", partition=0, offset=9, timestamp_ms=5, key=key, value=value, headers=headers
    )
    line = to_json(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_json(line, None, ()) == Outgoing(
        key=key, value=value, headers=headers, timestamp_ms=5
    )


def test_bytes_that_are_not_text_are_printed_as_base64() -> None:
    assert json.loads(to_json(a_record(value=b"\xff")))["value"] == {"base64": "/w=="}


def test_a_line_is_split_at_the_first_separator() -> None:
    record = read_line(b"k:v:w", b":", None, [("h", b"1")])
    assert record == Outgoing(key=b"k", value=b"v:w", headers=(("h", b"1"),))


def test_a_line_without_its_separator_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="no separator '='"):
        read_line(b"k:v", b"=", None, ())


def test_a_key_given_for_all_records_wins() -> None:
    assert read_json(b'{"key": "a", "value": "v"}', b"b", ()).key == b"b"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[1]",
        b"[" * 100_000,
        b'{"value": 1}',
        b'{"value": {"base64": "?"}}',
        b'{"value": {"base64": "", "more": 1}}',
        b'{"valeu": "v"}',
        b'{"timestamp_ms": "5"}',
        b'{"timestamp_ms": true}',
        b'{"headers": 5}',
        b'{"headers": [["a"]]}',
        b'{"headers": [[1, "a"]]}',
    ],
)
def test_an_invalid_record_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidRecord):
        read_json(line, None, ())


def test_headers_may_be_written_as_an_object() -> None:
    assert read_json(b'{"headers": {"a": "1"}}', None, ()).headers == (("a", b"1"),)


def test_text_shows_the_key_only_with_a_separator() -> None:
    assert to_text(a_record(), None) == b"v\n"
    assert to_text(a_record(), b"=") == b"k=v\n"
    assert to_text(a_record(key=None, value=None), b"=") == b"=\n"


def test_hex_does_not_distinguish_null_from_empty() -> None:
    assert to_hex(a_record(key=None, value=b"")) == b'1\t2\t3\t-\t""\n'
    assert to_hex(a_record()) == b"1\t2\t3\t6b\t76\n"
