"""Large frames over real links: small ones overtake them, old brokers get them whole."""

import socket
from typing import Any

import pytest

from kafkaesque.net.config import LinkConfig
from kafkaesque.net.link_frame import frame
from kafkaesque.net.pieces import PIECE_TAG
from kafkaesque.raft.messages import AppendRequest, Heartbeat, StateRequest
from kafkaesque.types import Buffer
from tests.net.identities import an_identity
from tests.net.linking import QUICK, End, introduce, linked, listening, some_ends, until
from tests.net.test_links import a_beat, both_loops
from tests.server.running import run_on

LARGE = bytes(range(256)) * (80 << 10)
"""20 MB: far more than the buffers of two sockets hold."""

OLD = LinkConfig(backoff_ms_min=1, backoff_ms_max=5, refused_backoff_ms=5, version_max=1)


@both_loops
@pytest.mark.parametrize(("source", "target"), [(1, 2), (2, 1)])
def test_small_messages_overtake_a_large_append_in_both_directions(
    loop: str, source: int, target: int
) -> None:
    async def go() -> None:
        ends = {end.node: end for end in some_ends(2)}
        sender, receiver = ends[source], ends[target]
        async with listening(*ends.values()):
            introduce(*ends.values())
            await linked(*ends.values())
            reader = receiver.links._open[source]._transport
            reader.pause_reading()
            assert sender.append(target, LARGE, group="orders-0")
            link = sender.links._open[target]
            await until(lambda: not link._is_writable)
            assert sender.links.is_sending(target, "orders-0")
            assert sender.append(target, b"after it", group="orders-0", at=1)
            assert sender.append(target, b"beside it", group="orders-1", at=7)
            assert sender.heartbeat(target, "orders-0", commit=9)
            assert sender.links.send_beat(a_beat(source, target, 1))
            reader.resume_reading()
            answer = await sender.links.call(target, 1, b"abc")
            assert bytes(answer) == b"cba"
            assert receiver.beats
            kinds = [(group, type(message)) for group, message in receiver.messages]
            assert ("orders-0", Heartbeat) in kinds
            assert ("orders-1", AppendRequest) in kinds
            assert ("orders-0", AppendRequest) not in kinds
            await until(lambda: len(receiver.messages) == 4)
            first, second = (m for g, m in receiver.messages[2:] if isinstance(m, AppendRequest))
            assert first.entries[0].payload == LARGE
            assert second.entries[0].payload == b"after it"
            assert not sender.links.is_sending(target, "orders-0")
            assert sender.links.counters[target].sent_messages == 6
            assert receiver.links.counters[source].received_messages == 6

    run_on(loop, go())


@both_loops
@pytest.mark.parametrize("configs", [(OLD, QUICK), (QUICK, OLD), (OLD, OLD)])
def test_a_broker_of_an_older_version_gets_whole_frames(
    loop: str, configs: tuple[LinkConfig, LinkConfig]
) -> None:
    async def go() -> None:
        one, two = (End(an_identity(node), c) for node, c in zip((1, 2), configs, strict=True))
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            for end, other in ((one, two), (two, one)):
                peer = end.links.peer(other.node)
                assert peer is not None
                assert peer.version == 1
                assert end.append(other.node, LARGE)
                assert end.heartbeat(other.node)
                await until(lambda other=other: len(other.messages) == 2)  # type: ignore[misc]
                payloads = [
                    entry.payload
                    for _, message in other.messages
                    if isinstance(message, AppendRequest)
                    for entry in message.entries
                ]
                assert payloads == [LARGE]
            assert one.opened(2) == 1

    run_on(loop, go())


PIECES: dict[str, tuple[list[Buffer], str]] = {
    "empty": (frame((PIECE_TAG, 9, 0), [b""]), "a piece of 0 bytes, 1 to 1048576 are allowed"),
    "too large": (
        frame((PIECE_TAG, 2 << 30, 0), [b"1"]),
        "a frame of 2147483648 bytes in pieces, the limit is 134217728",
    ),
    "beyond the end": (
        frame((PIECE_TAG, 3, 0), [b"1234"]),
        "a piece ends at byte 4 of a frame of 3",
    ),
    "two frames mixed": (
        [*frame((PIECE_TAG, 9, 0), [b"1234"]), *frame((PIECE_TAG, 9, 0), [b"1234"])],
        "a piece at byte 0 of 9 where byte 4 of 9 was due",
    ),
    "a middle without a beginning": (
        frame((PIECE_TAG, 9, 4), [b"1234"]),
        "a piece at byte 4 of 9 where byte 0 of another frame was due",
    ),
    "garbage": (frame((PIECE_TAG, 8, 0), [b"\0\0\0\4oops"]), "a head cannot be read: *"),
}


@both_loops
@pytest.mark.parametrize("name", PIECES)
@pytest.mark.complains(
    *(f"link_refused peer=127.0.0.1:* reason='{reason}'" for _, reason in PIECES.values()),
    'link_refused peer=127.0.0.1:* reason="a head cannot be read: *"',
)
def test_invalid_pieces_cut_the_link_with_one_log_line_and_it_comes_back(
    loop: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    parts, reason = PIECES[name]

    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            one.links._open[2]._transport.write(b"".join(parts))
            await until(lambda: two.opened(1) == 2)
            await linked(one, two)
            assert one.append(2, LARGE)
            await until(lambda: len(two.messages) == 1)
            assert two.links.refused == 1

    run_on(loop, go())
    lines = [r.getMessage() for r in caplog.records if "link_refused" in r.getMessage()]
    assert len(lines) == 1
    assert reason.rstrip("*") in lines[0]


@both_loops
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='a piece of a frame, which this link version *'",
)
def test_a_piece_on_a_link_of_an_older_version_is_refused(loop: str) -> None:
    async def go() -> None:
        one, two = some_ends(2, OLD)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            one.links._open[2]._transport.write(b"".join(frame((PIECE_TAG, 9, 0), [b"1234"])))
            await until(lambda: two.links.refused > 0)
            assert two.links.refused == 1

    run_on(loop, go())


def test_all_small_messages_of_one_turn_are_one_write() -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            link = one.links._open[2]
            counting = Counting(link._transport)
            link._transport = counting  # type: ignore[assignment]
            one.append(2, b"a batch", group="orders-0")
            one.heartbeat(2, "orders-1")
            question = StateRequest(source=1, target=2, term=1, offset=0, crc=0, position=0)
            one.links.send(2, "orders-2", question)
            one.append(2, b"another", group="orders-3")
            await until(lambda: len(two.messages) == 4)
            assert counting.writes == 1

    run_on("asyncio", go())


class Counting:
    """A transport that counts what is written to it."""

    def __init__(self, transport: Any) -> None:
        self.writes = 0
        self._transport = transport

    def write(self, data: Buffer) -> None:
        self.writes += 1
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="the system has no such limit")
def test_the_kernel_buffers_little_unsent_data() -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            for end, node in ((one, 2), (two, 1)):
                sock = end.links._open[node]._transport.get_extra_info("socket")
                unsent = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
                assert unsent == QUICK.unsent_bytes_max

    run_on("asyncio", go())
