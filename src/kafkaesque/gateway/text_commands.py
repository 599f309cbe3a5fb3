"""The commands of the text protocol: parses a line into a command, or raises an error.

Words are separated by spaces or tabs; any word may be quoted as in CSV files, where a quote inside
quotes is doubled. Commands are case-insensitive. The message of PUBS is the rest of the line, plain
or quoted.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from kafkaesque.gateway.text_errors import BadCommand
from kafkaesque.gateway.text_message import Message, parse_message

NAME_CHARS_SHOWN = 60
"""Characters of the input that are quoted back."""

GROUP_CHARS_MAX = 255
NUMBER_MAX = (1 << 63) - 1
NUMBER_DIGITS_MAX = len(str(NUMBER_MAX))
BLANKS = " \t"


class CreateTopic(Struct, frozen=True, kw_only=True):
    """`CRTP topic [partitions] [replicas]`; None leaves it to the broker."""

    topic: str
    partitions: int | None = None
    replicas: int | None = None


class Publish(Struct, frozen=True, kw_only=True):
    """`PUBS topic message`."""

    topic: str
    message: Message


class Subscribe(Struct, frozen=True, kw_only=True):
    """`SUBS topic group [partitions]`."""

    topic: str
    group: str
    count: int = 1


class Consume(Struct, frozen=True, kw_only=True):
    """`CONS topic subscription offset`."""

    topic: str
    subscription: str
    offset: int


class Push(Struct, frozen=True, kw_only=True):
    """`PUSH topic group [partitions]`; None takes all that are free."""

    topic: str
    group: str
    count: int | None = None


class Stop(Struct, frozen=True):
    """`STOP`: end the push."""


class ListTopics(Struct, frozen=True):
    """`LIST` or `TOPICS`."""


class Help(Struct, frozen=True):
    """`HELP`."""


class Disconnect(Struct, frozen=True):
    """`DISC`."""


Command: TypeAlias = (
    CreateTopic | Publish | Subscribe | Consume | Push | Stop | ListTopics | Help | Disconnect
)

HELP_LINES = (
    "CRTP topic [partitions] [replicas]   create a topic",
    'PUBS topic {"Key":"k","Header":"h","Body":"b"}   publish; Key and Header may be left out',
    "SUBS topic group [partitions]   subscribe; returns an id for each partition",
    "CONS topic subscription offset   read up to 100 records from the offset",
    "PUSH topic group [partitions]   receive new records as they arrive, until STOP",
    "LIST   list the topics",
    "DISC   say goodbye",
)


def parse(line: str) -> Command | None:
    """Return the command of a line, None for an empty one; raises BadCommand."""
    word, rest = _next_word(line)
    if not word:
        return None
    make = _COMMANDS.get(word.upper())
    if make is None:
        raise BadCommand(f"unknown command {shown(word)}; HELP lists the commands")
    return make(rest)


def shown(text: str) -> str:
    """Return input cut short enough to be quoted back."""
    return text if len(text) <= NAME_CHARS_SHOWN else text[:NAME_CHARS_SHOWN] + "…"


def _create_topic(rest: str) -> CreateTopic:
    usage = "CRTP topic [partitions] [replicas]"
    words = _words(rest, usage, at_least=1, at_most=3)
    numbers = [_count(word, usage) for word in words[1:]]
    return CreateTopic(
        topic=words[0],
        partitions=numbers[0] if numbers else None,
        replicas=numbers[1] if len(numbers) > 1 else None,
    )


def _publish(rest: str) -> Publish:
    topic, message = _next_word(rest)
    message = message.strip(BLANKS)
    if not topic or not message:
        raise BadCommand('usage: PUBS topic {"Body":"…"}')
    return Publish(topic=topic, message=parse_message(_unquoted(message)))


def _subscribe(rest: str) -> Subscribe:
    usage = "SUBS topic group [partitions]"
    words = _words(rest, usage, at_least=2, at_most=3)
    count = _count(words[2], usage) if len(words) > 2 else 1
    return Subscribe(topic=words[0], group=_group(words[1]), count=count)


def _consume(rest: str) -> Consume:
    usage = "CONS topic subscription offset"
    words = _words(rest, usage, at_least=3, at_most=3)
    return Consume(topic=words[0], subscription=words[1], offset=_number(words[2], usage))


def _push(rest: str) -> Push:
    usage = "PUSH topic group [partitions]"
    words = _words(rest, usage, at_least=2, at_most=3)
    count = _count(words[2], usage) if len(words) > 2 else None
    return Push(topic=words[0], group=_group(words[1]), count=count)


def _bare(word: str, command: Command) -> Callable[[str], Command]:
    def make(rest: str) -> Command:
        _words(rest, word, at_least=0, at_most=0)
        return command

    return make


_COMMANDS: Mapping[str, Callable[[str], Command]] = {
    "CRTP": _create_topic,
    "PUBS": _publish,
    "SUBS": _subscribe,
    "CONS": _consume,
    "PUSH": _push,
    "STOP": _bare("STOP", Stop()),
    "LIST": _bare("LIST", ListTopics()),
    "TOPICS": _bare("TOPICS", ListTopics()),
    "HELP": lambda _: Help(),
    "DISC": _bare("DISC", Disconnect()),
}


def _words(rest: str, usage: str, *, at_least: int, at_most: int) -> list[str]:
    words: list[str] = []
    while rest:  # ends: every word takes at least a character
        word, rest = _next_word(rest)
        if word:
            words.append(word)
        if len(words) > at_most:
            break
    if not at_least <= len(words) <= at_most:
        raise BadCommand(f"usage: {usage}")
    return words


def _next_word(text: str) -> tuple[str, str]:
    """Return the first word and the rest; the word is empty if there is none."""
    text = text.lstrip(BLANKS)
    if text.startswith('"'):
        end = _closing_quote(text)
        if end + 1 < len(text) and text[end + 1] not in BLANKS:
            raise BadCommand("a quoted word must end at its closing quote")
        return text[1:end].replace('""', '"'), text[end + 1 :]
    for place, char in enumerate(text):
        if char in BLANKS:
            return text[:place], text[place:]
    return text, ""


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    word, rest = _next_word(text)
    if rest.strip(BLANKS):
        raise BadCommand("nothing may follow the quoted message")
    return word


def _closing_quote(text: str) -> int:
    """Return the position of the closing quote; doubled quotes do not count."""
    place = text.find('"', 1)
    while place != -1 and text[place + 1 : place + 2] == '"':
        place = text.find('"', place + 2)
    if place == -1:
        raise BadCommand("a quote is not closed; inside quotes a quote is doubled")
    return place


def _number(word: str, usage: str) -> int:
    # Not int() alone: it accepts signs, underscores and other scripts' digits, and is slow on long
    # ones.
    is_number = word.isascii() and word.isdecimal() and len(word) <= NUMBER_DIGITS_MAX
    if not is_number or int(word) > NUMBER_MAX:
        raise BadCommand(f"{shown(word)} is not a number from 0 up; usage: {usage}")
    return int(word)


def _count(word: str, usage: str) -> int:
    number = _number(word, usage)
    if not 0 < number < 1 << 15:
        raise BadCommand(f"{number} is not a number from 1 to 32767; usage: {usage}")
    return number


def _group(word: str) -> str:
    if len(word) > GROUP_CHARS_MAX:
        raise BadCommand(f"a group name may have at most {GROUP_CHARS_MAX} characters")
    return word
