"""Filters telnet commands out of a client's text (RFC 854).

Commands start with the byte IAC, which never occurs in UTF-8. Options are refused, as required of a
peer without any; everything else is skipped. After ctrl-C a telnet client discards its input until
its *timing mark* is answered, so it is answered.
"""

from enum import Enum, auto

from msgspec import Struct

from kafkaesque.gateway.text_errors import BadCommand

IAC = 0xFF
INTERRUPT = 0xF4
SUBNEGOTIATION = 0xFA
SUBNEGOTIATION_END = 0xF0
WILL, WONT, DO, DONT = 0xFB, 0xFC, 0xFD, 0xFE

COMMANDS_PER_READ_MAX = 1_000
"""A client sends a few dozen in total; filtering many takes time from other clients."""

_REFUSALS = {WILL: DONT, DO: WONT}


class _State(Enum):
    """The kind of the next byte; a command may be split anywhere."""

    TEXT = auto()
    COMMAND = auto()
    OPTION = auto()
    SUBNEGOTIATION = auto()
    SUBNEGOTIATION_COMMAND = auto()


class Cleaned(Struct, frozen=True, kw_only=True):
    """The result of filtering."""

    text: bytes
    refusals: bytes = b""
    """To be sent back."""
    is_interrupt: bool = False
    """Whether the user pressed ctrl-C."""


class TelnetFilter:
    """Filters telnet commands out of one connection's bytes; buffers none."""

    def __init__(self) -> None:
        self._state = _State.TEXT
        self._command = 0

    def clean(self, data: bytes) -> Cleaned:
        """Return the text in these bytes; raises BadCommand for a flood of telnet commands."""
        if self._state is _State.TEXT and IAC not in data:
            return Cleaned(text=data)
        if data.count(IAC) > COMMANDS_PER_READ_MAX:
            raise BadCommand("too many telnet commands at once")
        text, refusals = bytearray(), bytearray()
        is_interrupt = False
        place = 0
        while place < len(data):  # ends: every turn takes at least a byte
            match self._state:
                case _State.TEXT:
                    command = data.find(IAC, place)
                    end = len(data) if command == -1 else command
                    text += data[place:end]
                    place = end
                    self._state = _State.TEXT if command == -1 else _State.COMMAND
                case _State.COMMAND:
                    is_interrupt |= data[place] == INTERRUPT
                    self._on_command(data[place], text)
                case _State.OPTION:
                    if self._command in _REFUSALS:
                        refusals += bytes((IAC, _REFUSALS[self._command], data[place]))
                    self._state = _State.TEXT
                case _State.SUBNEGOTIATION:
                    command = data.find(IAC, place)
                    place = len(data) if command == -1 else command
                    if command != -1:
                        self._state = _State.SUBNEGOTIATION_COMMAND
                case _State.SUBNEGOTIATION_COMMAND:
                    is_end = data[place] == SUBNEGOTIATION_END
                    self._state = _State.TEXT if is_end else _State.SUBNEGOTIATION
            place += 1
        return Cleaned(text=bytes(text), refusals=bytes(refusals), is_interrupt=is_interrupt)

    def _on_command(self, byte: int, text: bytearray) -> None:
        match byte:
            case _ if byte in (WILL, WONT, DO, DONT):
                self._command = byte
                self._state = _State.OPTION
            case _ if byte == SUBNEGOTIATION:
                self._state = _State.SUBNEGOTIATION
            case _:
                if byte == IAC:  # doubled: the byte itself, which no line of text may have
                    text.append(IAC)
                self._state = _State.TEXT
