"""How two brokers open a link: who they are, that they belong together, which protocol they speak.

    dialer                               acceptor
      │ 0x01, Hello ───────────────────────▶ │ another cluster, another node, no common version?
      │ ◀────────────────────────────── Hello │
      │ Proof ─────────────────────────────▶ │ the same secret?
      │ ◀────────────────────────────── Proof │
      │ Opened ────────────────────────────▶ │ from here on frames, both ways

Either side may answer Refused with a sentence instead, and hangs up. A proof is an HMAC with the
cluster's secret over both hellos, in which both sides have put a fresh nonce, and over the side
that proves: neither an old exchange nor the other's own proof can be played back. The dialer proves
first, so that nobody learns anything of the secret by dialing. What is said before the proofs is
bounded, and taken at its word only when they have matched.

No I/O and no clock here: frames in, frames out. The proofs say who opened the link; they do not
seal what is sent over it afterwards.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from kafkaesque.errors import LinkRefused, MalformedLink
from kafkaesque.net.heads import SENTENCE_CHARS_MAX, Natural, Sentence
from kafkaesque.types import NodeId

FIRST_BYTE = b"\x01"
"""By this the door knows a link: Kafka's first byte is 0, text begins with a letter."""

VERSION_FIRST = 1
VERSION_LAST = 3
"""The protocols that this version of Kafkaesque speaks on links."""

PIECES_SINCE = 2
"""From this version on large frames go in pieces."""

MATCHED_SINCE = 3
"""From this version on a heartbeat says how much of the follower's log its leader counts."""

HANDSHAKE_BYTES_MAX = 64 << 10
"""What a peer may send before it has proven anything."""

NONCE_BYTES = 32
DIRECTORY_BYTES = 16
FEATURES_MAX = 64

_LABEL = b"kafkaesque link "
_VISITOR = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a broker is on its links."""

    cluster: str
    """Clusters that meet do not mix; empty only for a visitor that has none yet."""

    node: NodeId | None
    """None for a visitor that has no number yet: it may only make calls."""

    directory: bytes
    """16 bytes that were drawn when the data folder was made."""

    session: int
    """Another number each time the broker starts."""

    features: Mapping[str, int] = field(default_factory=dict)
    """The levels of features that the broker can work at."""

    secret: bytes = field(default=b"", repr=False)
    """What all brokers of the cluster know, and nobody else; empty only on one machine."""

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
"""Told a node and its directory, says in a sentence why it may not open a link, or None."""

_Cluster: TypeAlias = Annotated[str, Meta(max_length=100)]
_Level: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 15)]
_FeatureName: TypeAlias = Annotated[str, Meta(max_length=100)]


class _Hello(Struct, array_like=True, frozen=True, tag=40):
    """Later protocols may add fields at the end, so that they are told apart and not garbled."""

    version_first: Natural
    version_last: Natural
    cluster: _Cluster
    node: Natural
    wanted: Natural
    """The node that the dialer wants to reach; 0 where it takes anyone, and in an answer."""

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
    """One side of the opening of one link; `peer` is there once both are convinced.

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
        """Our own number."""
        return self._identity.node

    @property
    def has_secret(self) -> bool:
        """Whether a proof of ours means anything beyond this machine."""
        return bool(self._identity.secret)

    @property
    def is_proven(self) -> bool:
        """Whether the other side has shown that it knows the secret."""
        return self._state in (_State.OPENING, _State.OPEN)

    def dial(self, wanted: NodeId | None) -> bytes:
        """Return the first frame of the side that dials; it follows the first byte.

        Without a wanted node whoever answers is taken: so a visitor comes.
        """
        assert self._state is _State.HELLO
        self._is_dialer = True
        self._wanted = wanted
        self._sent = self._our_hello(wanted or _VISITOR)
        return self._sent

    def receive(self, data: memoryview) -> bytes | None:
        """Take a frame; return the one to send, if any."""
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
        """Raise LinkRefused unless the other side is one that we may have a link with."""
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
            raise _refusal(f"node {wanted} was wanted, but node {found} is here")
        if hello.node and hello.node == ours.node:
            raise _refusal(f"both sides say that they are node {ours.node}")
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
    """Return the frame that says why there will be no link."""
    return _ENCODE(_Refused(reason=reason[:SENTENCE_CHARS_MAX]))


def _refusal(reason: str) -> LinkRefused:
    return LinkRefused(reason, refusal_frame(reason))


def _digest(dialers: bytes, acceptors: bytes) -> bytes:
    """Return what both sides have said so far; each part alone, so that they cannot be shifted."""
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
