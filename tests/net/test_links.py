"""Links between brokers over real sockets, on either loop."""

import asyncio
import contextlib
import random
import socket
import struct
from collections import defaultdict
from typing import Any

import pytest

from kafkaesque.errors import PeerUnreachable
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.dialer import dial
from kafkaesque.net.errors import AnswerLost, CallRefused, LinkRefused
from kafkaesque.net.handshake import HANDSHAKE_BYTES_MAX
from kafkaesque.net.link import Link, is_this_machine
from kafkaesque.net.links import Peer
from kafkaesque.raft.messages import AppendRequest
from kafkaesque.raft.roster import Beat
from tests.net.identities import SECRET, an_identity
from tests.net.linking import (
    QUICK,
    SECONDS_MAX,
    End,
    introduce,
    linked,
    listening,
    some_ends,
    strange,
    until,
)
from tests.server.running import LOOPS, run_on

MEBIBYTE = 1 << 20

both_loops = pytest.mark.parametrize("loop", LOOPS)


def a_beat(source: int, target: int, sequence: int) -> Beat:
    return Beat(
        source=source,
        target=target,
        session=5,
        sequence=sequence,
        heard_session=0,
        heard_sequence=0,
        holds=-1,
        since=-1,
        version=1,
        rested=(("orders-0", 1, 7),),
        woken=(),
    )


MANY_MESSAGES = 8_000
"""Eight for each of a thousand groups."""

MANY_MESSAGES = 8_000
"""Eight for each of a thousand groups."""


@both_loops
def test_two_brokers_exchange_messages_and_beats(loop: str) -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            assert one.append(2, b"a batch", b"another", group="orders-0", at=4)
            assert two.heartbeat(1, "orders-1", commit=9)
            assert one.links.send_beat(a_beat(1, 2, 1))
            await until(lambda: bool(two.beats and one.messages))
            assert two.beats == [a_beat(1, 2, 1)]
            ((group, message),) = two.messages
            assert isinstance(message, AppendRequest)
            assert (group, message.source, message.prev_end) == ("orders-0", 1, 4)
            assert [entry.payload for entry in message.entries] == [b"a batch", b"another"]
            assert one.messages[0][0] == "orders-1"

    run_on(loop, go())


@both_loops
def test_three_brokers_have_one_connection_for_each_pair(loop: str) -> None:
    async def go() -> None:
        ends = some_ends(3)
        async with listening(*ends):
            introduce(*ends)
            await linked(*ends)
            assert [end.links.nodes for end in ends] == [[2, 3], [1, 3], [1, 2]]
            opened = [c.opened for end in ends for c in end.links.counters.values()]
            assert opened == [1] * 6

    run_on(loop, go())


@both_loops
@pytest.mark.parametrize("gone", [1, 2])
def test_a_lost_broker_is_suspect_at_once_and_found_when_it_returns(loop: str, gone: int) -> None:
    async def go() -> None:
        ends = some_ends(2)
        async with listening(*ends):
            introduce(*ends)
            await linked(*ends)
            stays, leaves = ends[2 - gone], ends[gone - 1]
            await leaves.stop()
            await until(lambda: gone in stays.suspects)
            assert stays.links.nodes == []
            assert not stays.heartbeat(gone)
            back = End(an_identity(gone, session=77))
            back.port = leaves.port
            async with listening(back):
                introduce(stays, back)
                await linked(stays, back)
                assert stays.opened(gone) == 2
                assert stays.heartbeat(gone)
                await until(lambda: len(back.messages) == 1)

    run_on(loop, go())


@both_loops
def test_a_broken_connection_is_reopened_without_suspicion(loop: str) -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            two.links._open[1].cut()
            await until(lambda: one.opened(2) == 2)
            await until(lambda: two.opened(1) == 2)
            assert one.suspects == two.suspects == []

    run_on(loop, go())


@both_loops
def test_a_peer_that_hangs_up_at_once_is_dialed_again(loop: str) -> None:
    async def go() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        (one,) = some_ends(1)

        class Late(Link):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                listener.close()  # resets what it has not accepted, before we send anything
                super().connection_made(transport)

        def link() -> Link:
            made = one.links._link(an_identity(1), (2,))
            made.__class__ = Late
            return made

        async with listening(one):
            with pytest.raises(PeerUnreachable, match="hung up"):
                await dial(link, "127.0.0.1", port, QUICK.dial_ms_max)

    run_on(loop, go())


@both_loops
def test_messages_of_a_thousand_groups_keep_their_order_within_each(loop: str) -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            chance = random.Random(1)
            sent: defaultdict[str, int] = defaultdict(int)
            for number in range(MANY_MESSAGES):
                group = f"g{chance.randrange(1000)}"
                size = 100_000 if number % 500 == 0 else 10
                assert one.append(2, bytes(size), group=group, at=sent[group])
                sent[group] += 1
                if number % 1000 == 0:
                    await asyncio.sleep(0)
            await until(lambda: len(two.messages) == MANY_MESSAGES)
            for group, count in sent.items():
                assert two.ends_of_appends(group) == list(range(count))

    run_on(loop, go())


@both_loops
def test_a_call_is_answered_refused_or_times_out(loop: str) -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            assert bytes(await one.links.call(2, 1, b"abc")) == b"cba"
            large = bytes(3 * MEBIBYTE) + b"x"
            assert bytes(await two.links.call(1, 1, large)) == large[::-1]
            with pytest.raises(CallRefused, match="thirteen"):
                await one.links.call(2, 13, b"")
            with pytest.raises(AnswerLost, match="within 5 ms"):
                await one.links.call(2, 99, b"", deadline_ms=5)
            with pytest.raises(PeerUnreachable):
                await one.links.call(3, 1, b"")
            answers = asyncio.gather(*(one.links.call(2, 1, b"%d" % n) for n in range(100, 200)))
            assert [int(bytes(a)[::-1]) for a in await answers] == list(range(100, 200))
            lost = asyncio.ensure_future(one.links.call(2, 99, b""))
            await asyncio.sleep(0)
            await two.stop()
            with pytest.raises(AnswerLost, match="link was lost"):
                await lost

    run_on(loop, go())


@both_loops
def test_a_slow_reader_costs_a_bounded_queue_and_is_sent_more_when_it_reads(
    loop: str,
) -> None:
    config = LinkConfig(queue_bytes_max=2 * MEBIBYTE, write_buffer_bytes_max=64 << 10)

    async def go() -> None:
        one, two = some_ends(2, config)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            reader = two.links._open[1]._transport
            reader.pause_reading()
            batch = bytes(100_000)
            taken = []
            for number in range(400):
                if one.append(2, batch, at=number):
                    taken.append(number)
                if number % 10 == 0:
                    one.heartbeat(2)
                    await asyncio.sleep(0.001)
            assert len(taken) < 300
            link = one.links._open[2]
            assert link._outbox.size <= 2 * MEBIBYTE
            assert one.links.counters[2].dropped_messages >= 400 - len(taken)
            reader.resume_reading()
            await until(lambda: len(two.ends_of_appends()) == len(taken))
            assert two.ends_of_appends() == taken
            assert one.append(2, batch, at=400)
            await until(lambda: two.ends_of_appends()[-1] == 400)

    run_on(loop, go())


@both_loops
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"secret": b"another"}, "same cluster secret"),
        ({"secret": b""}, "same cluster secret"),
        ({"cluster": "garden"}, "belongs to cluster"),
    ],
)
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='one broker belongs to cluster kitchen, the *",
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: one broker *",
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: the two *",
    "link_refused peer=127.0.0.1:* reason='the two brokers do not have the same cluster secret'",
)
def test_brokers_of_different_clusters_both_report_why(
    loop: str, changes: dict[str, Any], sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        one, two = End(an_identity(1)), End(an_identity(2, **changes))
        async with listening(one, two):
            introduce(one, two)
            await until(lambda: min(one.links.refused, two.links.refused) > 0)
            assert one.links.nodes == two.links.nodes == []

    run_on(loop, go())
    lines = [record.getMessage() for record in caplog.records if sentence in record.getMessage()]
    assert any("other side refuses" in line for line in lines)
    assert any("other side refuses" not in line for line in lines)


@both_loops
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='expected node 2, but reached node 3'",
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: expected node 2, *",
)
def test_another_node_at_the_address_is_refused(loop: str) -> None:
    async def go() -> None:
        one, three = End(an_identity(1)), End(an_identity(3))
        async with listening(one, three):
            one.links.set_peers([Peer(node=2, host="127.0.0.1", port=three.port)])
            await until(lambda: min(one.links.refused, three.links.refused) > 0)
            assert one.links.nodes == []

    run_on(loop, go())


@both_loops
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='node 1 has lost its data folder: it must join *",
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: node 1 has *",
)
def test_a_node_that_returned_with_another_folder_is_refused(loop: str) -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            two.links.set_peers(
                [Peer(node=1, host="127.0.0.1", port=one.port, directory=b"?" * 16)]
            )
            one.links.set_peers([two.peer()])
            await until(lambda: min(one.links.refused, two.links.refused) > 0)
            assert two.links.nodes == []

    run_on(loop, go())


@both_loops
@pytest.mark.parametrize(
    "data",
    [
        b"\x01" + bytes(range(256)) * 20,
        b"\x02",
        b"\x01" + struct.pack(">i", 1 << 30),
        b"\x01" + struct.pack(">i", HANDSHAKE_BYTES_MAX - 4) + bytes(HANDSHAKE_BYTES_MAX),
        b"\x01" + struct.pack(">i", 0),
    ],
)
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='a frame of 1073741824 bytes, the limit is 65536'",
    "link_refused peer=127.0.0.1:* reason='a frame of 66051 bytes, the limit is 65536'",
    "link_refused peer=127.0.0.1:* reason='a handshake cannot be read: Input data was truncated'",
    "link_refused peer=127.0.0.1:* reason='a link does not start with byte 2'",
    "link_refused peer=127.0.0.1:* reason='more than 65536 bytes before any proof'",
)
def test_garbage_before_a_proof_closes_only_that_connection(loop: str, data: bytes) -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
            writer.write(data)
            async with asyncio.timeout(SECONDS_MAX):
                with contextlib.suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.close()
            await until(lambda: two.links.refused == 1)
            assert one.heartbeat(2)
            await until(lambda: len(two.messages) == 1)

    run_on(loop, go())


@both_loops
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='a head cannot be read: Expected `array`, got `int`'",
)
def test_garbage_from_a_proven_peer_closes_only_its_link_which_comes_back(loop: str) -> None:
    async def go() -> None:
        one, two, three = some_ends(3)
        async with listening(one, two, three):
            introduce(one, two, three)
            await linked(one, two, three)
            one.links._open[3]._transport.write(struct.pack(">i", 8) + b"\0\0\0\4oops")
            await until(lambda: three.opened(1) == 2)
            assert three.opened(2) == 1
            await linked(one, two, three)
            assert one.heartbeat(3)
            await until(lambda: len(three.messages) == 1)
            assert three.links.refused == 1

    run_on(loop, go())


@both_loops
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='the other side did not prove itself in time'",
)
def test_a_connection_without_a_proof_in_time_is_closed(loop: str) -> None:
    async def go() -> None:
        (two,) = some_ends(1, LinkConfig(handshake_ms_max=20))
        async with listening(two):
            reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
            writer.write(b"\x01")
            async with asyncio.timeout(SECONDS_MAX):
                with contextlib.suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.close()

    run_on(loop, go())


@both_loops
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='too many brokers are opening links at once'",
)
def test_too_many_unproven_connections_are_turned_away(loop: str) -> None:
    async def go() -> None:
        (two,) = some_ends(1, LinkConfig(handshakes_max=2))
        async with listening(two):
            waiting = [await asyncio.open_connection("127.0.0.1", two.port) for _ in range(3)]
            async with asyncio.timeout(SECONDS_MAX):
                assert b"too many brokers" in await waiting[-1][0].read()
            for _, writer in waiting:
                writer.close()

    run_on(loop, go())


@both_loops
@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: the two *",
    "link_refused peer=127.0.0.1:* reason='the two brokers do not have the same cluster secret'",
)
def test_a_visitor_with_an_address_and_the_secret_may_ask(loop: str) -> None:
    async def go() -> None:
        one = End(an_identity(1))
        visitor = End(an_identity(None, cluster=""))
        stranger = End(an_identity(None, cluster="", secret=SECRET[1:]))
        async with listening(one, visitor, stranger):
            address = ("127.0.0.1", one.port)
            opened, answer = await visitor.links.visit(address, 1, b"join")
            assert (opened.cluster, opened.node, bytes(answer)) == ("kitchen", 1, b"nioj")
            assert one.links.nodes == []
            with pytest.raises(LinkRefused, match="secret"):
                await stranger.links.visit(address, 1, b"join")
            port = one.port
        with pytest.raises(PeerUnreachable):
            await visitor.links.visit(("127.0.0.1", port), 1, b"join")

    run_on(loop, go())


@both_loops
def test_a_removed_peer_has_no_link_any_more(loop: str) -> None:
    async def go() -> None:
        one, two = some_ends(2)
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            one.links.set_peers([])
            await until(lambda: two.links.nodes == [])
            assert one.links.nodes == []
            one.links.set_peers([two.peer()])
            await linked(one, two)

    run_on(loop, go())


@pytest.mark.parametrize(
    ("peername", "is_here"),
    [
        (("127.0.0.1", 1), True),
        (("::1", 1, 0, 0), True),
        (("::ffff:127.0.0.1", 1, 0, 0), True),
        ("", True),
        (("10.0.0.1", 1), False),
        (("fe80::1%eth0", 1, 0, 2), False),
        (("::ffff:10.0.0.1", 1, 0, 0), False),
    ],
)
def test_only_this_machine_needs_no_secret(peername: object, is_here: bool) -> None:
    assert is_this_machine(peername) is is_here


@both_loops
def test_within_one_machine_no_secret_is_needed(loop: str) -> None:
    async def go() -> None:
        one, two = End(an_identity(1, secret=b"")), End(an_identity(2, secret=b""))
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            assert (set(one.links.nodes), set(two.links.nodes)) == ({2}, {1})

    run_on(loop, go())


def test_all_messages_of_one_turn_are_written_at_once() -> None:
    reads: list[int] = []

    async def go() -> None:
        one = End(an_identity(1))
        two = End(an_identity(2), on_received=lambda: reads.append(1))
        async with listening(one, two):
            introduce(one, two)
            await linked(one, two)
            for number in range(100):
                one.heartbeat(2, commit=number)
            await until(lambda: len(two.messages) == 100)

    run_on("asyncio", go())
    assert reads == [1]


@pytest.mark.complains("link_refused peer=127.0.0.1:* reason='a frame of 1213486160 bytes, *'")
def test_an_address_taken_by_another_program_is_dialed_with_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def go() -> None:
        one = End(an_identity(1))
        async with strange(b"HTTP/1.1 400 Bad Request\r\n") as stranger, listening(one):
            host, port = stranger.address
            one.links.set_peers([Peer(node=2, host=host, port=port)])
            await until(lambda: stranger.met > 2)

    asyncio.run(go())
    assert not [one for one in caplog.records if one.exc_info], "it is not our error"
