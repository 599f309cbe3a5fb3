"""Gossip packets between brokers: values only."""

from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from kafkaesque.types import NodeId


class State(IntEnum):
    """The state of a member; within one incarnation the later in this list wins."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3


class Member(Struct, frozen=True, kw_only=True):
    """A broker, as gossip knows it."""

    node: NodeId
    host: str
    port: int
    rack: str = ""
    incarnation: int = 0
    """Raised only by the member itself, to contradict claims about it."""

    state: State = State.ALIVE

    @property
    def rank(self) -> tuple[int, State]:
        """Orders claims about one member: the higher one wins."""
        return self.incarnation, self.state

    @property
    def is_there(self) -> bool:
        """Whether it may be contacted: a suspect is not dead yet."""
        return self.state in (State.ALIVE, State.SUSPECT)


class Ping(Struct, frozen=True, kw_only=True):
    """Asks a member whether it is alive."""

    sender: Member
    number: int
    news: tuple[Member, ...]


class PingRequest(Struct, frozen=True, kw_only=True):
    """Asks a helper to ping a member that does not answer the sender."""

    sender: Member
    number: int
    subject: NodeId
    news: tuple[Member, ...]


class Ack(Struct, frozen=True, kw_only=True):
    """Confirms that the member of the ping or request with this number is alive."""

    sender: Member
    number: int
    news: tuple[Member, ...]


class Sync(Struct, frozen=True, kw_only=True):
    """All members the sender knows; asks for the same in return, unless it is itself an answer."""

    sender: Member
    is_answer: bool
    news: tuple[Member, ...]


Packet: TypeAlias = Ping | PingRequest | Ack | Sync
