"""What brokers tell each other of each other: values only."""

from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from kafkaesque.types import NodeId


class State(IntEnum):
    """What is said of a member; of two words of one incarnation the later in this list counts."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3


class Member(Struct, frozen=True, kw_only=True):
    """A broker, as it is known."""

    node: NodeId
    host: str
    port: int
    rack: str = ""
    incarnation: int = 0
    """Raised by the member alone, to contradict what is said of it."""

    state: State = State.ALIVE

    @property
    def rank(self) -> tuple[int, State]:
        """By this two words on one member are compared: the higher one counts."""
        return self.incarnation, self.state

    @property
    def is_there(self) -> bool:
        """Whether it may be spoken to: suspicion is not yet a verdict."""
        return self.state in (State.ALIVE, State.SUSPECT)


class Ping(Struct, frozen=True, kw_only=True):
    """Are you there?"""

    sender: Member
    number: int
    news: tuple[Member, ...]


class PingRequest(Struct, frozen=True, kw_only=True):
    """I get no answer from this one: ask it for me."""

    sender: Member
    number: int
    subject: NodeId
    news: tuple[Member, ...]


class Ack(Struct, frozen=True, kw_only=True):
    """The one whom your ping or request of this number was about is there."""

    sender: Member
    number: int
    news: tuple[Member, ...]


class Sync(Struct, frozen=True, kw_only=True):
    """Everyone I know; an answer with everyone you know is asked for, unless this is one."""

    sender: Member
    is_answer: bool
    news: tuple[Member, ...]


Packet: TypeAlias = Ping | PingRequest | Ack | Sync
