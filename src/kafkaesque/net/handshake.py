"""How two brokers open a link: identity, same cluster, common protocol version.

    dialer                               acceptor
      │ 0x01, Hello ───────────────────────▶ │ another cluster, another node, no common version?
      │ ◀────────────────────────────── Hello │
      │ Proof ─────────────────────────────▶ │ the same secret?
      │ ◀────────────────────────────── Proof │
      │ Opened ────────────────────────────▶ │ from here on frames, both ways

Either side may instead answer Refused, with a reason, and hang up. A proof is an HMAC with the
cluster's secret over both hellos, each with a fresh nonce, and over the proving side: neither an
old exchange nor the other side's own proof can be replayed. The dialer proves first, so dialing
reveals nothing about the secret. Everything before the proofs is bounded, and trusted only once
they match.

No I/O and no clock here: frames in, frames out. The proofs authenticate who opened the link; they
do not protect later traffic on it.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from kafkaesque.net.errors import LinkRefused, MalformedLink
from kafkaesque.net.heads import SENTENCE_CHARS_MAX, Natural, Sentence
from kafkaesque.types import NodeId

FIRST_BYTE = b"\x01"
"""The door recognizes a link by this byte: Kafka's first byte is 0, text starts with a letter."""

VERSION_FIRST = 1
VERSION_LAST = 3
"""The link protocols that this version of Kafkaesque supports."""

PIECES_SINCE = 2
"""From this version on, large frames are sent in pieces."""

MATCHED_SINCE = 3
"""From this version on, a heartbeat carries how much of the follower's log its leader counts."""

HANDSHAKE_BYTES_MAX = 64 << 10
"""The most that a peer may send before its proof."""

NONCE_BYTES = 32
DIRECTORY_BYTES = 16
FEATURES_MAX = 64

_LABEL = b"kafkaesque link "
_VISITOR = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A broker's identity on its links."""

    cluster: str
    """Brokers of different clusters never link; empty only for a visitor without a cluster."""

    node: NodeId | None
    """None for a visitor without a node id: it may only make calls."""

    directory: bytes
    """16 random bytes, generated when the data folder was created."""

    session: int
    """A different number for each start of the broker."""

    features: Mapping[str, int] = field(default_factory=dict)
    """The feature levels that the broker supports."""

    secret: bytes = field(default=b"", repr=False)
    """The secret shared by the cluster's brokers; empty only on one machine."""

    def __post_init__(self) -> None:
        assert len(self.directory) == DIRECTORY_BYTES
        assert self.node is None or (self.node > 0 and self.cluster)
        assert self.session > 0
        assert len(self.features) <= FEATURES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The other side, once it has proven that it belongs to the cluster."""

    cluster: str
    node: NodeId | None
    directory: bytes
    session: int
    features: Mapping[str, int]
    version: int


Admits: TypeAlias = Callable[[NodeId | None, bytes], str | None]
"""Takes a node and its directory; returns the reason to refuse its link, or None."""

_Cluster: TypeAlias = Annotated[str, Meta(max_length=100)]
_Level: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 15)]
_FeatureName: TypeAlias = Annotated[str, Meta(max_length=100)]


class _Hello(Struct, array_like=True, frozen=True, tag=40):
    """Later protocols may append fields, so that they are recognized and not garbled."""

    version_first: Natural
    version_last: Natural
    cluster: _Cluster
    node: Natural
    wanted: Natural
    """The node that the dialer wants to reach; 0 for any node, and in an answer."""

    directory: Annotated[bytes, Meta(min_length=DIRECTORY_BYTES, max_length=DIRECTORY_BYTES)]
    session: Natural
    features: Annotated[dict[_FeatureName, _Level], Meta(max_length=FEATURES_MAX)]
    nonce: Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]


class _Proof(Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag=41):
    mac: Annotated[bytes, Meta(max_length=64)]


class _Opened(Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag=42):
    pass


class _Refused(Struct, array_like=True, frozen=True, tag=43):
    reason: Sentence


_Frame: TypeAlias = _Hello | _Proof | _Opened | _Refused
_F = TypeVar("_F", _Hello, _Proof, _Opened)
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(_Frame).decode


class _State(Enum):
    HELLO = auto()
    PROOF = auto()
    OPENING = auto()
    OPEN = auto()


class Handshake:
    """One side of the opening of one link; `peer` is set once both proofs match.

    After LinkRefused send its `answer`, if it has one, and hang up; after MalformedLink hang up.
    """

    def __init__(
        self, identity: Identity, nonce: bytes, admits: Admits, version_last: int = VERSION_LAST
    ) -> None:
        assert len(nonce) == NONCE_BYTES
        self._version_last = min(version_last, VERSION_LAST)
        self.peer: Opened | None = None
        self._identity = identity
        self._nonce = nonce
        self._admits = admits
        self._state = _State.HELLO
        self._is_dialer = False
        self._wanted: NodeId | None = None
        self._sent = b""
        self._hello: _Hello
        self._transcript: bytes

    @property
    def node(self) -> NodeId | None:
        """Our own node id."""
        return self._identity.node

    @property
    def has_secret(self) -> bool:
        """Whether our proof means anything beyond this machine."""
        return bool(self._identity.secret)

    @property
    def is_proven(self) -> bool:
        """Whether the other side has proven that it knows the secret."""
        return self._state in (_State.OPENING, _State.OPEN)

    def dial(self, wanted: NodeId | None) -> bytes:
        """Return the dialer's first frame; it follows the first byte.

        Without a wanted node any node may answer: visitors dial like this.
        """
        assert self._state is _State.HELLO
        self._is_dialer = True
        self._wanted = wanted
        self._sent = self._our_hello(wanted or _VISITOR)
        return self._sent

    def receive(self, data: memoryview) -> bytes | None:
        """Handle a frame; return the one to send, if any."""
        frame = _decoded(data)
        if isinstance(frame, _Refused):
            raise LinkRefused(f"the other side refuses the link: {frame.reason}")
        match self._state:
            case _State.HELLO:
                return self._on_hello(_expect(frame, _Hello), bytes(data))
            case _State.PROOF:
                return self._on_proof(_expect(frame, _Proof))
            case _State.OPENING:
                _expect(frame, _Opened)
                self._open()
                return None
            case _State.OPEN:
                raise AssertionError("the link is open: its frames are not the handshake's")

    def _on_hello(self, hello: _Hello, data: bytes) -> bytes:
        self._check(hello)
        self._hello = hello
        if self._is_dialer:
            self._transcript = _digest(self._sent, data)
            answer = self._proof(by_dialer=True)
        else:
            answer = self._our_hello(_VISITOR)
            self._transcript = _digest(data, answer)
        self._state = _State.PROOF
        return answer

    def _on_proof(self, proof: _Proof) -> bytes:
        expected = self._mac(by_dialer=not self._is_dialer)
        if not hmac.compare_digest(proof.mac, expected):
            raise _refusal("the two brokers do not have the same cluster secret")
        if self._is_dialer:
            self._open()
            return _ENCODE(_Opened())
        self._state = _State.OPENING
        return self._proof(by_dialer=False)

    def _open(self) -> None:
        hello = self._hello
        self._state = _State.OPEN
        self.peer = Opened(
            cluster=hello.cluster,
            node=hello.node or None,
            directory=hello.directory,
            session=hello.session,
            features=hello.features,
            version=min(self._version_last, hello.version_last),
        )

    def _check(self, hello: _Hello) -> None:
        """Raise LinkRefused unless a link with the other side is allowed."""
        ours = self._identity
        if hello.version_first > self._version_last or hello.version_last < VERSION_FIRST:
            theirs = f"{hello.version_first} to {hello.version_last}"
            known = f"{VERSION_FIRST} to {self._version_last}"
            raise _refusal(f"one broker speaks link protocol {theirs}, the other {known}")
        is_new = not (hello.cluster or hello.node) or not (ours.cluster or ours.node)
        if hello.cluster != ours.cluster and not is_new:
            raise _refusal(
                f"one broker belongs to cluster {hello.cluster or 'none'}, "
                f"the other to {ours.cluster or 'none'}"
            )
        wanted = self._wanted if self._is_dialer else (hello.wanted or None)
        found = hello.node if self._is_dialer else ours.node
        if wanted is not None and wanted != found:
            raise _refusal(f"expected node {wanted}, but reached node {found}")
        if hello.node and hello.node == ours.node:
            raise _refusal(f"both sides claim to be node {ours.node}")
        objection = self._admits(hello.node or None, hello.directory)
        if objection is not None:
            raise _refusal(objection)

    def _our_hello(self, wanted: NodeId) -> bytes:
        ours = self._identity
        return _ENCODE(
            _Hello(
                version_first=VERSION_FIRST,
                version_last=self._version_last,
                cluster=ours.cluster,
                node=ours.node or _VISITOR,
                wanted=wanted,
                directory=ours.directory,
                session=ours.session,
                features=dict(ours.features),
                nonce=self._nonce,
            )
        )

    def _proof(self, *, by_dialer: bool) -> bytes:
        return _ENCODE(_Proof(mac=self._mac(by_dialer=by_dialer)))

    def _mac(self, *, by_dialer: bool) -> bytes:
        side = b"dialer" if by_dialer else b"acceptor"
        message = _LABEL + side + self._transcript
        return hmac.digest(self._identity.secret, message, hashlib.sha256)


def refusal_frame(reason: str) -> bytes:
    """Return the frame that refuses a link with a reason."""
    return _ENCODE(_Refused(reason=reason[:SENTENCE_CHARS_MAX]))


def _refusal(reason: str) -> LinkRefused:
    return LinkRefused(reason, refusal_frame(reason))


def _digest(dialers: bytes, acceptors: bytes) -> bytes:
    """Return a digest of both hellos, each hashed alone so that no bytes can shift."""
    return hashlib.sha256(dialers).digest() + hashlib.sha256(acceptors).digest()


def _decoded(data: memoryview) -> _Frame:
    try:
        frame: _Frame = _DECODE(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedLink(f"a handshake cannot be read: {error}") from None
    return frame


def _expect(frame: _Frame, kind: type[_F]) -> _F:
    if not isinstance(frame, kind):
        raise MalformedLink("the frames of a handshake are out of order")
    return frame
