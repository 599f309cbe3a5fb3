"""What each consumer reads, remembered between its requests so that it need not repeat it.

Kafka's incremental fetch sessions (KIP-227). A consumer names all its partitions once and gets a
session. After that it sends only changes, and responses contain only partitions with news. Every
request of a session has an epoch, so that both sides notice when the other lost track; then the
consumer starts over with a full request.

A session is a convenience that a broker may withdraw at any time: when there are too many, the
least recently used one goes. It grants nothing: every request is authorized on its own.
"""

import random
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from kafkaesque.broker.partition.partition_errors import (
    FetchEpochWrong,
    FetchSessionUnknown,
    FetchTopicsMixed,
)
from kafkaesque.config import FetchConfig
from kafkaesque.machines.catalog.catalog import NAME_CHARS_MAX
from kafkaesque.types import Offset, Term

TopicRef: TypeAlias = str | bytes
"""A topic by its name, or by its id."""

Place: TypeAlias = tuple[TopicRef, int]
"""A partition of a topic."""

NO_SESSION = 0
FULL_EPOCH = 0
"""The request names all partitions and asks for a session."""
FINAL_EPOCH = -1
"""The request names all partitions, and wants no session or closes the one that it names."""

_EPOCH_MAX = 2**31 - 1
_UNTOLD = -1


class Want(NamedTuple):
    """What a consumer wants from one partition."""

    topic: TopicRef
    partition: int
    offset: Offset
    bytes_max: int
    known_term: Term = -1
    last_term: Term = -1
    """The term of its last record; -1 if it does not say."""

    @property
    def place(self) -> Place:
        """The partition."""
        return self.topic, self.partition


class _Entry:
    """One partition of a session: what is wanted, and what the consumer was last sent."""

    __slots__ = ("first_offset", "high_watermark", "want")

    def __init__(self, want: Want) -> None:
        self.want = want
        self.high_watermark: Offset = _UNTOLD
        self.first_offset: Offset = _UNTOLD


class FetchSession:
    """The partitions that one consumer reads, in reading order.

    `epoch` is that of the last served request, `size` the number of partitions.
    """

    __slots__ = ("_entries", "epoch", "session_id", "uses_ids")

    def __init__(self, session_id: int, wants: Iterable[Want], *, uses_ids: bool) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        self.epoch = FULL_EPOCH
        self._entries = {want.place: _Entry(want) for want in wants}

    @property
    def size(self) -> int:
        """How many partitions it holds."""
        return len(self._entries)

    def wants(self) -> list[Want]:
        """Return what to read, in order: the first are served first when there is too much."""
        return [entry.want for entry in self._entries.values()]

    def change(self, wants: Iterable[Want], forgotten: Iterable[Place]) -> None:
        """Add partitions or replace their wants; then drop the forgotten ones."""
        entries = self._entries
        for want in wants:
            entry = entries.get(want.place)
            if entry is None:
                entries[want.place] = _Entry(want)
            else:
                entry.want = want
        for place in forgotten:
            entries.pop(place, None)

    def tell(self, place: Place, high_watermark: Offset, first_offset: Offset) -> bool:
        """Note what is sent to the consumer now; return whether any of it is news."""
        entry = self._entries.get(place)
        if entry is None:  # forgotten by a request that overtook this one
            return True
        if entry.high_watermark == high_watermark and entry.first_offset == first_offset:
            return False
        entry.high_watermark, entry.first_offset = high_watermark, first_offset
        return True

    def failed(self, place: Place) -> None:
        """Note an error sent to the consumer: recovery from it will be news."""
        entry = self._entries.get(place)
        if entry is not None:
            entry.high_watermark = entry.first_offset = _UNTOLD

    def served(self, place: Place) -> None:
        """Move a partition that returned records to the end, so that all get their turn."""
        entry = self._entries.pop(place, None)
        if entry is not None:
            self._entries[place] = entry


class FetchSessions:
    """All sessions of one broker, bounded in number and in partitions."""

    def __init__(self, chance: random.Random, config: FetchConfig) -> None:
        self._chance = chance
        self._config = config
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many partitions all sessions hold together."""
        return self._partitions

    def open(self, wants: Sequence[Want], *, uses_ids: bool) -> FetchSession | None:
        """Start a session; None if it would hold too much. Consumers can do without one."""
        if not 0 < len(wants) <= self._config.session_partitions_max or _are_long(wants):
            return None
        session = FetchSession(self._new_id(), wants, uses_ids=uses_ids)
        self._sessions[session.session_id] = session
        self._partitions += session.size
        self._evict()
        return session

    def resume(
        self,
        session_id: int,
        epoch: int,
        wants: Sequence[Want],
        forgotten: Iterable[Place],
        *,
        uses_ids: bool,
    ) -> FetchSession:
        """Continue a session at its next epoch; raises errors that make a client start over.

        A session left without partitions ends, and its id becomes NO_SESSION.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise FetchSessionUnknown(f"fetch session {session_id} does not exist or has ended")
        if _are_long(wants):
            self.close(session_id)
            raise FetchSessionUnknown("a topic name in the fetch session is longer than allowed")
        expected = following(session.epoch)
        if epoch != expected:
            raise FetchEpochWrong(f"the fetch session expects epoch {expected}, not {epoch}")
        if session.uses_ids != uses_ids:
            raise FetchTopicsMixed("a fetch session names topics by id or by name, not both")
        self._partitions -= session.size
        session.change(wants, forgotten)
        self._partitions += session.size
        session.epoch = epoch
        if session.size > self._config.session_partitions_max:
            self.close(session_id)
            raise FetchSessionUnknown(f"a fetch session cannot hold {session.size} partitions")
        if session.size == 0:
            self.close(session_id)
            session.session_id = NO_SESSION
            return session
        self._sessions.move_to_end(session_id)
        self._evict()
        return session

    def configure(self, config: FetchConfig) -> None:
        """Apply new settings; sessions beyond the limits are forgotten at once."""
        self._config = config
        self._evict()

    def close(self, session_id: int) -> None:
        """Forget a session, if it exists."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= session.size

    def _evict(self) -> None:
        config = self._config
        while (
            len(self._sessions) > config.sessions_max
            or self._partitions > config.sessions_partitions_max
        ):
            self.close(next(iter(self._sessions)))

    def _new_id(self) -> int:
        # Terminates: the limits leave most of the 31-bit ids unused.
        while True:
            session_id = self._chance.getrandbits(31)
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id


def _are_long(wants: Iterable[Want]) -> bool:
    """Return whether a name is too long for a topic: the limits count partitions, not bytes."""
    return any(len(want.topic) > NAME_CHARS_MAX for want in wants)


def following(epoch: int) -> int:
    """Return the epoch after this one; it never wraps to that of a full request."""
    return 1 if epoch == _EPOCH_MAX else epoch + 1
