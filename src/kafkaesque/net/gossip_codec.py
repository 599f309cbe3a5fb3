"""Gossip packets as bytes and back: msgpack arrays that start with a tag.

They travel as the data of calls, over links or between strangers that know the secret.
"""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from kafkaesque.gossip.messages import (
    Ack,
    Member,
    Packet,
    Ping,
    PingRequest,
    State,
    Sync,
)
from kafkaesque.net.errors import MalformedLink
from kafkaesque.net.heads import Natural

NEWS_MAX = 1_000
"""Members in one packet: the most that a member may know."""

_Name: TypeAlias = Annotated[str, Meta(max_length=255)]
_Port: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 16)]


class _Member(Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    node: Natural
    host: _Name
    port: _Port
    rack: _Name
    incarnation: Natural
    state: State


class _Packet(Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    sender: _Member
    unused_number: Natural
    unused_node: Natural | None
    news: Annotated[tuple[_Member, ...], Meta(max_length=NEWS_MAX)]


class _Ping(_Packet, tag=1, frozen=True):
    number: Natural


class _PingRequest(_Packet, tag=2, frozen=True):
    number: Natural
    subject: Natural


class _Ack(_Packet, tag=3, frozen=True):
    number: Natural


class _Sync(_Packet, tag=4, frozen=True):
    is_answer: bool


_UNUSED = 0, None
"""A place for the catalog's leader, always empty; older brokers cannot decode packets without it.
"""

_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(_Ping | _PingRequest | _Ack | _Sync).decode


def encode_packet(packet: Packet) -> bytes:
    """Return a packet as bytes."""
    common = _packed(packet.sender), *_UNUSED, [_packed(m) for m in packet.news]
    match packet:
        case Ping():
            return _ENCODE((1, *common, packet.number))
        case PingRequest():
            return _ENCODE((2, *common, packet.number, packet.subject))
        case Ack():
            return _ENCODE((3, *common, packet.number))
        case Sync():
            return _ENCODE((4, *common, packet.is_answer))


def decode_packet(data: memoryview) -> Packet:
    """Return the decoded packet; raises MalformedLink if the bytes are not a packet."""
    try:
        found: _Ping | _PingRequest | _Ack | _Sync = _DECODE(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedLink(f"a gossip packet cannot be read: {error}") from None
    sender = _member(found.sender)
    news = tuple(map(_member, found.news))
    match found:
        case _Ping(number=number):
            return Ping(sender=sender, number=number, news=news)
        case _PingRequest(number=number, subject=subject):
            return PingRequest(sender=sender, number=number, subject=subject, news=news)
        case _Ack(number=number):
            return Ack(sender=sender, number=number, news=news)
        case _Sync(is_answer=is_answer):
            return Sync(sender=sender, is_answer=is_answer, news=news)


def _packed(member: Member) -> tuple[object, ...]:
    place = member.node, member.host, member.port, member.rack
    return (*place, member.incarnation, member.state)


def _member(found: _Member) -> Member:
    return Member(
        node=found.node,
        host=found.host,
        port=found.port,
        rack=found.rack,
        incarnation=found.incarnation,
        state=found.state,
    )
