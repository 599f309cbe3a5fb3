"""A message and its record: strings are text, null is nothing, other JSON stays as written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.gateway.text_errors import BadCommand
from kafkaesque.gateway.text_message import Message, parse_message

TEXT = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"])))


def as_bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@given(key=TEXT, header=TEXT, body=TEXT)
def test_text_is_kept_unchanged(key: str | None, header: str | None, body: str | None) -> None:
    written = json.dumps({"Key": key, "Header": header, "Body": body})
    message = Message(key=as_bytes(key), header=as_bytes(header), body=as_bytes(body))
    assert parse_message(written) == message


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("1", b"1"),
        ("1e999", b"1e999"),
        ("123456789012345678901234567890", b"123456789012345678901234567890"),
        ("true", b"true"),
        ('{ "b" : [1, 2],  "a":"x y" }', b'{"b":[1,2],"a":"x y"}'),
        ("[]", b"[]"),
        ("null", None),
        ('""', b""),
    ],
)
def test_a_body_that_is_not_a_string_is_kept_as_compact_json(
    written: str, kept: bytes | None
) -> None:
    assert parse_message(f'{{"Body": {written} }}').body == kept


@pytest.mark.parametrize(
    "written",
    [
        "",
        "[]",
        '"Body"',
        "{}",
        '{"Key":"1"}',
        '{"Body":"x","Boddy":"y"}',
        '{"Body":"x","body":"y"}',
        '{"Body":"x"',
        '{"Body":"x"} {}',
        '{"Body":"\\ud800"}',
        '{"Body":NaN}',
        '{"Body":' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_an_invalid_message_is_refused(written: str) -> None:
    with pytest.raises(BadCommand, match="JSON object such as"):
        parse_message(written)


@given(st.text())
def test_any_text_is_a_message_or_is_refused(written: str) -> None:
    """No other error is raised, whatever the text is."""
    try:
        message = parse_message(written.encode(errors="replace").decode())
    except BadCommand as refused:
        assert "JSON object such as" in str(refused)
    else:
        assert message.size <= 2 * len(written.encode(errors="replace"))
