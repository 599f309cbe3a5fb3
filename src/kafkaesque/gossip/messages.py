"""What brokers tell each other of each other: values only."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from kafkaesque.types import NodeId


class State(IntEnum):
    """What is said of a member; of two words of one incarnation the later in this list counts."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Are you there?"""

    sender: Member
    number: int
    news: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PingRequest:
    """I get no answer from this one: ask it for me."""

    sender: Member
    number: int
    subject: NodeId
    news: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """The one whom your ping or request of this number was about is there."""

    sender: Member
    number: int
    news: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Everyone I know; an answer with everyone you know is asked for, unless this is one."""

    sender: Member
    is_answer: bool
    news: tuple[Member, ...]


Packet: TypeAlias = Ping | PingRequest | Ack | Sync
