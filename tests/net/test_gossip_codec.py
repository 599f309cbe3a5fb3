"""Gossip packets round-trip, and any other bytes are refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from kafkaesque.net.gossip_codec import decode_packet, encode_packet
from tests.net.messages import naturals

members = st.builds(
    Member,
    node=naturals,
    host=st.text(max_size=20),
    port=st.integers(0, 65535),
    rack=st.text(max_size=5),
    incarnation=naturals,
    state=st.sampled_from(State),
)
common: dict[str, Any] = {
    "sender": members,
    "news": st.lists(members, max_size=4).map(tuple),
}
packets = st.one_of(
    st.builds(Ping, number=naturals, **common),
    st.builds(PingRequest, number=naturals, subject=naturals, **common),
    st.builds(Ack, number=naturals, **common),
    st.builds(Sync, is_answer=st.booleans(), **common),
)


@given(packet=packets)
def test_a_packet_round_trips(packet: Packet) -> None:
    assert decode_packet(memoryview(encode_packet(packet))) == packet


def test_a_brokers_claims_about_leaders_are_ignored() -> None:
    """The format has a field for it, which is left empty."""
    told = memoryview(msgspec.msgpack.encode([1, SENDER, 7, 2, [], 5]))
    packet = decode_packet(told)
    assert isinstance(packet, Ping)
    assert msgspec.msgpack.decode(encode_packet(packet)) == [1, SENDER, 0, None, [], 5]


@given(packet=packets)
def test_a_truncated_packet_is_refused(packet: Packet) -> None:
    data = memoryview(encode_packet(packet))
    for end in range(len(data)):
        with pytest.raises(MalformedLink):
            decode_packet(data[:end])


@given(data=st.binary(max_size=100))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedLink):
        decode_packet(memoryview(data))


SENDER = [1, "host", 9092, "", 0, 0]


@pytest.mark.parametrize(
    "packet",
    [
        [1, SENDER, 0, None, []],
        [1, SENDER, 0, None, [], 1, 1],
        [9, SENDER, 0, None, [], 1],
        [1, [1, "host", 1 << 16, "", 0, 0], 0, None, [], 1],
        [1, [1, "host", 9092, "", 0, 4], 0, None, [], 1],
        [1, [1, "h" * 256, 9092, "", 0, 0], 0, None, [], 1],
        [1, SENDER, 0, None, [SENDER] * 1_001, 1],
        [4, SENDER, 0, None, [], 1],
    ],
)
def test_a_packet_that_breaks_one_rule_is_refused(packet: list[object]) -> None:
    with pytest.raises(MalformedLink):
        decode_packet(memoryview(msgspec.msgpack.encode(packet)))
