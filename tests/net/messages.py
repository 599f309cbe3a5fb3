"""Random messages between brokers, one strategy for each kind."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from kafkaesque.entry import Entry, LogStart, TermOpened, Voters
from kafkaesque.net.heads import GROUP_CHARS_MAX, STATE_KIND_CHARS_MAX
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRejected,
    AppendRequest,
    Heartbeat,
    HeartbeatResponse,
    InstallRequest,
    Message,
    StateOffer,
    StatePiece,
    StateRequest,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from kafkaesque.raft.roster import Beat

SOURCE = 3
TARGET = 8

naturals = st.integers(0, (1 << 63) - 1)
groups = st.text(min_size=1, max_size=20) | st.just("g" * GROUP_CHARS_MAX)
flags = st.booleans()


@st.composite
def voters(draw: st.DrawFn) -> Voters:
    nodes = draw(st.lists(naturals, unique=True, max_size=7))
    cut = draw(st.integers(0, len(nodes)))
    return Voters(
        voters=tuple(sorted(nodes[:cut])), learners=tuple(sorted(nodes[cut:])), move=draw(naturals)
    )


starts = st.builds(
    LogStart,
    offset=naturals,
    marks_before=naturals,
    prev_term=naturals,
    voters=voters(),
    visible_offset=naturals,
)


checksums = st.integers(0, (1 << 32) - 1)
offers = st.builds(
    StateOffer, kind=st.text(max_size=STATE_KIND_CHARS_MAX), size=naturals, crc=checksums
)


@st.composite
def append_requests(draw: st.DrawFn) -> AppendRequest:
    """Entries with rising indexes from `prev_end`, perhaps with holes between them."""
    prev_end = index = draw(st.integers(0, 1 << 40))
    entries = []
    payloads = st.binary(min_size=1, max_size=300) | st.just(TermOpened()) | voters()
    for payload in draw(st.lists(payloads, max_size=5)):
        first = index + draw(st.integers(0, 2))
        index = first + (draw(st.integers(1, 1000)) if isinstance(payload, bytes) else 1)
        entries.append(Entry(first, index, draw(naturals), payload))
    return AppendRequest(
        source=SOURCE,
        target=TARGET,
        term=draw(naturals),
        prev_end=prev_end,
        prev_term=draw(naturals),
        commit=draw(naturals),
        entries=tuple(entries),
    )


def _plain(kind: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, source=st.just(SOURCE), target=st.just(TARGET), term=naturals, **fields)


MESSAGES: Mapping[type[Message], st.SearchStrategy[Message]] = {
    VoteRequest: _plain(
        VoteRequest, last_term=naturals, end=naturals, is_pre=flags, is_forced=flags
    ),
    VoteResponse: _plain(VoteResponse, is_pre=flags, is_granted=flags),
    AppendRequest: append_requests(),
    AppendAccepted: _plain(AppendAccepted, match=naturals, commit=naturals),
    AppendRejected: _plain(AppendRejected, prev_end=naturals, hint=naturals),
    Heartbeat: _plain(Heartbeat, commit=naturals, low=naturals, matched=naturals),
    HeartbeatResponse: _plain(HeartbeatResponse, commit=naturals, low=naturals),
    InstallRequest: _plain(InstallRequest, start=starts, state=st.none() | offers),
    StateRequest: _plain(StateRequest, offset=naturals, crc=checksums, position=naturals),
    StatePiece: _plain(
        StatePiece,
        offset=naturals,
        crc=checksums,
        position=naturals,
        data=st.binary(max_size=300),
    ),
    TimeoutNow: _plain(TimeoutNow),
}
messages = st.one_of(*MESSAGES.values())

beats = st.builds(
    Beat,
    source=st.just(SOURCE),
    target=st.just(TARGET),
    session=naturals,
    sequence=naturals,
    heard_session=naturals,
    heard_sequence=naturals,
    holds=st.just(-1) | naturals,
    since=st.just(-1) | naturals,
    version=naturals,
    rested=st.lists(st.tuples(groups, naturals, naturals), max_size=5).map(tuple),
    woken=st.lists(groups, max_size=5).map(tuple),
)


def an_append(*batches: bytes, prev_end: int = 0) -> AppendRequest:
    """Return an append of batches, each of which covers one index."""
    entries = [Entry(prev_end + n, prev_end + n + 1, 1, data) for n, data in enumerate(batches)]
    return AppendRequest(
        source=SOURCE,
        target=TARGET,
        term=1,
        prev_end=prev_end,
        prev_term=1,
        commit=0,
        entries=tuple(entries),
    )
