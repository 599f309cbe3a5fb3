"""The limits and waits of links between brokers, with the reason for each."""

from dataclasses import dataclass

from kafkaesque.errors import BadConfiguration

PIECE_BYTES_MAX = 1 << 20
"""Largest payload of one piece of a large frame between brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConfig:
    """How brokers keep the links between them."""

    frame_bytes_max: int = 128 << 20
    """The largest frame: the largest Produce request as one batch, plus its header."""

    whole_bytes_max: int = 2 << 20
    """Larger frames are sent in pieces: typical appends, up to 2 MB, are not split."""

    piece_bytes: int = 256 << 10
    """Size of one piece: a heartbeat queued behind it waits 10 ms at 200 Mbit/s."""

    queue_bytes_max: int = 32 << 20
    """Unsent bytes for one peer, in each of three lanes: small messages, appends and large frames.
    Beyond it messages are dropped, but a larger frame is accepted when it is alone in its lane."""

    queue_messages_max: int = 1 << 16
    """Messages queued in each lane: each takes some 200 bytes more than its parts."""

    write_buffer_bytes_max: int = 256 << 10
    """Bytes written for one peer but not yet taken by the system; later messages cannot overtake
    them."""

    unsent_bytes_max: int = 256 << 10
    """Bytes the system buffers for one peer before sending; nothing overtakes these either."""

    claimed_bytes_max: int = 4 << 20
    """Memory reserved by length alone for a frame, after the handshake: an append is not copied."""

    dial_ms_max: int = 2_000
    """How long connecting may take: regions are 300 ms apart at most."""

    handshake_ms_max: int = 5_000
    """How long the handshake may take once a peer is connected."""

    handshakes_max: int = 64
    """Incoming connections still in their handshake; further ones are closed."""

    backoff_ms_min: int = 50
    """The first pause before dialing again; each later one is up to twice as long."""

    backoff_ms_max: int = 1_000
    """The longest pause: a broker that is back is found within about a second."""

    refused_backoff_ms: int = 5_000
    """The pause after a refusal: only an operator can fix a wrong secret."""

    silence_ms_max: int = 5_000
    """The peer's system must acknowledge what was sent within this time, or the link is cut."""

    calls_pending_max: int = 10_000
    """Unanswered calls over one link, in each direction."""

    call_ms_max: int = 30_000
    """How long to wait for an answer unless the caller says otherwise."""

    lines_per_second_max: int = 10
    """Log lines about refused peers; beyond it they are only counted."""

    version_max: int = 3
    """The highest protocol version to speak. Lower only in tests, to act as an older version."""

    def __post_init__(self) -> None:
        if not 0 < self.piece_bytes <= min(PIECE_BYTES_MAX, self.whole_bytes_max):
            raise BadConfiguration(
                f"links.piece_bytes is {self.piece_bytes} and must be from 1 to {PIECE_BYTES_MAX}, "
                f"and at most links.whole_bytes_max, which is {self.whole_bytes_max}"
            )
