"""What may be typed, what it means, and that everything else gets one sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.gateway.text_commands import (
    Command,
    Consume,
    CreateTopic,
    Disconnect,
    Help,
    ListTopics,
    Publish,
    Push,
    Stop,
    Subscribe,
    parse,
)
from kafkaesque.gateway.text_errors import BadCommand
from kafkaesque.gateway.text_message import Message


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("CRTP t", CreateTopic(topic="t")),
        ("crtp t 3", CreateTopic(topic="t", partitions=3)),
        ("CRTP t 3 1", CreateTopic(topic="t", partitions=3, replicas=1)),
        ("SUBS t g", Subscribe(topic="t", group="g")),
        ("  subs \t t  g 2  ", Subscribe(topic="t", group="g", count=2)),
        ('SUBS "t" "my ""own"" group"', Subscribe(topic="t", group='my "own" group')),
        ("CONS t s1 0", Consume(topic="t", subscription="s1", offset=0)),
        ("PUSH t g", Push(topic="t", group="g")),
        ("PUSH t g 2", Push(topic="t", group="g", count=2)),
        ("stop", Stop()),
        ("LIST", ListTopics()),
        ("topics", ListTopics()),
        ("HELP", Help()),
        ("help me please", Help()),
        ("Disc", Disconnect()),
    ],
)
def test_a_command_is_understood(line: str, command: Command) -> None:
    assert parse(line) == command


@pytest.mark.parametrize(
    "line",
    [
        'PUBS t {"Key":"1","Header":"h","Body":"a b"}',
        'PUBS t   {"Key":"1", "Header":"h", "Body":"a b"}  ',
        'pubs t "{""Key"":""1"",""Header"":""h"",""Body"":""a b""}"',
        'PUBS "t" {"body":"a b","key":"1","header":"h"}',
    ],
)
@pytest.mark.requirement("TXT-1")
def test_a_message_may_be_plain_or_quoted(line: str) -> None:
    message = Message(key=b"1", header=b"h", body=b"a b")
    assert parse(line) == Publish(topic="t", message=message)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("FOO bar", "unknown command FOO; HELP"),
        ("CRTP", "CRTP topic"),
        ("CRTP t 0", "0 is not a number"),
        ("CRTP t 32768", "32768 is not a number"),
        ("CRTP t x", "x is not a number"),
        ("CRTP t 1 1 1", "CRTP topic"),
        ("PUBS t", "PUBS topic"),
        ("PUBS", "PUBS topic"),
        ("PUBS t hello", "JSON object"),
        ('PUBS t "{""Body"":""x""}', "not closed"),
        ('PUBS t "{""Body"":""x""}" more', "nothing may follow"),
        ("SUBS t", "SUBS topic group"),
        ("SUBS t g 0", "0 is not a number"),
        ("CONS t s1", "CONS topic subscription offset"),
        ("CONS t s1 -1", "-1 is not a number"),
        ("CONS t s1 \u0663", "is not a number"),
        ("CONS t s1 " + "9" * 19, "is not a number"),
        ("CONS t s1 " + "9" * 20, "is not a number"),
        ("STOP now", "usage: STOP"),
        ("SUBS t " + "g" * 256, "255 characters"),
    ],
)
def test_an_invalid_command_gets_one_short_sentence(line: str, part: str) -> None:
    with pytest.raises(BadCommand, match=part) as caught:
        parse(line)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("line", ["", "   ", "\t"])
def test_an_empty_line_is_ignored(line: str) -> None:
    assert parse(line) is None


WORDS = st.sampled_from(
    ["CRTP", "pubs", "SUBS", "CONS", "PUSH", "STOP", "LIST", "HELP", "DISC", "t", '"', '""', " "]
)


@given(st.one_of(st.text(), st.lists(st.one_of(WORDS, st.text(max_size=5))).map(" ".join)))
def test_any_line_is_a_command_or_gets_a_sentence(line: str) -> None:
    try:
        parse(line)
    except BadCommand as error:
        assert str(error)


@given(topic=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_word_can_be_quoted(topic: str) -> None:
    quoted = topic.replace('"', '""')
    assert parse(f'CRTP "{quoted}"') == CreateTopic(topic=topic)
