"""The opening of a link: brokers of one cluster recognize each other, others learn why not."""

from collections.abc import Iterator
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.net import handshake
from kafkaesque.net.errors import LinkRefused, MalformedLink
from kafkaesque.net.handshake import NONCE_BYTES, Admits, Handshake, Identity, refusal_frame
from tests.net.identities import an_identity, anyone

NONCES = (bytes(NONCE_BYTES), b"\1" * NONCE_BYTES)


def the_two(
    dialer: Identity, acceptor: Identity, admits: Admits = anyone
) -> tuple[Handshake, Handshake]:
    return Handshake(dialer, NONCES[0], anyone), Handshake(acceptor, NONCES[1], admits)


def talk(dialer: Handshake, acceptor: Handshake, wanted: int | None) -> Iterator[bytes]:
    """Carry frames between both sides; yield each one."""
    frame: bytes | None = dialer.dial(wanted)
    sides = [acceptor, dialer]
    while frame is not None:
        yield frame
        frame = sides[0].receive(memoryview(frame))
        sides.reverse()


def opened(dialer: Handshake, acceptor: Handshake, wanted: int | None = 2) -> list[bytes]:
    return list(talk(dialer, acceptor, wanted))


def test_brokers_of_one_cluster_learn_each_others_identity() -> None:
    dialer, acceptor = the_two(an_identity(1), an_identity(2))
    frames = opened(dialer, acceptor)
    assert len(frames) == 5
    assert sum(map(len, frames)) < 512
    assert dialer.peer is not None
    assert acceptor.peer is not None
    assert (dialer.peer.node, dialer.peer.session) == (2, 1002)
    assert (acceptor.peer.node, acceptor.peer.session) == (1, 1001)
    assert acceptor.peer.features == {"transactions": 2}
    assert acceptor.peer.version == handshake.VERSION_LAST


def test_neither_side_is_convinced_before_it_has_seen_the_others_proof() -> None:
    dialer, acceptor = the_two(an_identity(1), an_identity(2))
    seen = [(dialer.peer is None, acceptor.peer is None) for _ in talk(dialer, acceptor, 2)]
    assert seen == [(True, True)] * 4 + [(False, True)]


def test_two_empty_secrets_match() -> None:
    dialer, acceptor = the_two(an_identity(1, secret=b""), an_identity(2, secret=b""))
    opened(dialer, acceptor)
    assert acceptor.peer is not None


@pytest.mark.parametrize("secret", [b"", b"another"])
@pytest.mark.parametrize("is_dialer_wrong", [True, False])
def test_another_secret_is_refused(secret: bytes, is_dialer_wrong: bool) -> None:
    sides = [an_identity(1), an_identity(2)]
    wrong = 0 if is_dialer_wrong else 1
    sides[wrong] = an_identity(wrong + 1, secret=secret)
    dialer, acceptor = the_two(sides[0], sides[1])
    with pytest.raises(LinkRefused, match="same cluster secret"):
        opened(dialer, acceptor)
    assert acceptor.peer is None
    assert dialer.peer is None


@pytest.mark.parametrize(
    ("dialer", "acceptor", "wanted", "sentence"),
    [
        (an_identity(1), an_identity(2, cluster="garden"), 2, "kitchen, the other to garden"),
        (an_identity(1), an_identity(2), 3, "expected node 3, but reached node 2"),
        (an_identity(1), an_identity(1), 1, "both sides claim to be node 1"),
        (an_identity(None, cluster="x"), an_identity(2), None, "cluster x, the other to kitchen"),
    ],
)
def test_a_broker_of_another_cluster_gets_the_reason_in_one_sentence(
    dialer: Identity, acceptor: Identity, wanted: int | None, sentence: str
) -> None:
    first, second = the_two(dialer, acceptor)
    with pytest.raises(LinkRefused, match=sentence) as ours:
        opened(first, second, wanted)
    assert ours.value.answer is not None
    with pytest.raises(LinkRefused, match=sentence) as theirs:
        first.receive(memoryview(ours.value.answer))
    assert theirs.value.answer is None


def test_a_newer_protocol_is_refused_even_if_its_hello_is_longer() -> None:
    _, acceptor = the_two(an_identity(1), an_identity(2))
    hello = msgspec.msgpack.decode(Handshake(an_identity(1), NONCES[0], anyone).dial(2))
    hello[1:3] = [7, 9]
    with pytest.raises(LinkRefused, match="protocol 7 to 9, the other 1 to 3"):
        acceptor.receive(memoryview(msgspec.msgpack.encode([*hello, "more"])))


def test_a_node_that_is_not_admitted_gets_the_reason() -> None:
    def admits(node: int | None, directory: bytes) -> str | None:
        return f"node {node} lost its disk and must join as a new one"

    dialer, acceptor = the_two(an_identity(1), an_identity(2), admits)
    with pytest.raises(LinkRefused, match="node 1 lost its disk"):
        opened(dialer, acceptor)


def test_a_visitor_without_a_cluster_needs_only_the_secret() -> None:
    dialer, acceptor = the_two(an_identity(None, cluster=""), an_identity(2))
    opened(dialer, acceptor, wanted=None)
    assert acceptor.peer is not None
    assert acceptor.peer.node is None
    assert dialer.peer is not None
    assert dialer.peer.cluster == "kitchen"


def test_a_replayed_exchange_opens_no_link() -> None:
    dialer, acceptor = the_two(an_identity(1), an_identity(2))
    recorded = opened(dialer, acceptor)
    victim = Handshake(an_identity(2), b"\2" * NONCE_BYTES, anyone)
    victim.receive(memoryview(recorded[0]))
    with pytest.raises(LinkRefused, match="secret"):
        victim.receive(memoryview(recorded[2]))


def test_a_reflected_proof_opens_no_link() -> None:
    dialer, acceptor = the_two(an_identity(1), an_identity(2))
    hello = acceptor.receive(memoryview(dialer.dial(2)))
    assert hello is not None
    proof = dialer.receive(memoryview(hello))
    assert proof is not None
    with pytest.raises(LinkRefused, match="secret"):
        dialer.receive(memoryview(proof))


@pytest.mark.parametrize("places", [(2,), (4,), (0, 0), (0, 4), (0, 2, 2)])
def test_frames_out_of_order_are_malformed(places: tuple[int, ...]) -> None:
    frames = opened(*the_two(an_identity(1), an_identity(2)))
    acceptor = Handshake(an_identity(2), NONCES[1], anyone)
    for place in places[:-1]:
        acceptor.receive(memoryview(frames[place]))
    with pytest.raises(MalformedLink, match="out of order"):
        acceptor.receive(memoryview(frames[places[-1]]))


@given(data=st.binary(max_size=300))
def test_garbage_is_malformed(data: bytes) -> None:
    acceptor = Handshake(an_identity(2), NONCES[1], anyone)
    with pytest.raises(MalformedLink):
        acceptor.receive(memoryview(data))


@given(place=st.integers(0, 10_000), value=st.integers(0, 255), step=st.integers(0, 4))
def test_whatever_is_altered_in_transit_the_link_opens_on_no_false_claim(
    place: int, value: int, step: int
) -> None:
    dialer, acceptor = the_two(an_identity(1), an_identity(2))
    sides = [acceptor, dialer]
    frame: bytes | None = dialer.dial(2)
    with suppress(LinkRefused, MalformedLink):
        for number in range(5):
            assert frame is not None
            damaged = bytearray(frame)
            if number == step:
                damaged[place % len(damaged)] = value
            frame = sides[0].receive(memoryview(bytes(damaged)))
            sides.reverse()
    for peer, node in ((acceptor.peer, 1), (dialer.peer, 2)):
        if peer is not None:
            assert (peer.node, peer.session) == (node, 1000 + node)


def test_a_long_reason_still_fits_a_readable_frame() -> None:
    dialer, _ = the_two(an_identity(1), an_identity(2))
    dialer.dial(2)
    with pytest.raises(LinkRefused, match="x" * 900):
        dialer.receive(memoryview(refusal_frame("x" * 5_000)))


def test_a_secret_is_not_printed() -> None:
    assert "thirty-two" not in repr(an_identity(1))
