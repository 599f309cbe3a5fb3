"""What each member of a share group reads here, remembered between its requests (KIP-932).

A member opens a session with the broker that leads its partitions. After that it sends only
changes, with an epoch that counts up, so that both sides notice when one lost track. What the
member holds belongs to its session: when the session ends, its records are released.
"""

from collections.abc import Callable, Iterable

from kafkaesque.errors import BrokerError
from kafkaesque.machines.queues.share_records import Place

OPENING = 0
CLOSING = -1

SESSIONS_MAX = 2_000
"""Sessions of one broker, as in Kafka: one for each member that reads something here."""

SESSION_PLACES_MAX = 10_000
"""Partitions of one session: a small request asks for all of them."""

PLACES_MAX = 100_000
"""Partitions of all sessions together."""

_EPOCH_MAX = (1 << 31) - 1

Key = tuple[str, str]
"""Group and member."""


class ShareSessionUnknown(BrokerError):
    """The member has no session here; it opens a new one."""


class ShareEpochWrong(BrokerError):
    """The request's epoch is not the next one of its session."""


class ShareSessionsFull(BrokerError):
    """This broker has as many share sessions as it may have."""


class ShareSession:
    """One member's partitions on this broker, those served longest ago first."""

    __slots__ = ("connection", "epoch", "group", "held", "is_ended", "member", "places")

    def __init__(self, key: Key, connection: int) -> None:
        self.group, self.member = key
        self.connection = connection
        self.epoch = OPENING
        self.is_ended = False
        """Then its member gets nothing more: nobody would release it."""
        self.places: dict[Place, None] = {}
        self.held: dict[Place, None] = {}
        """Where it may hold records."""

    def served(self, place: Place) -> None:
        """Move a partition that gave records to the end, so that all get their turn."""
        self.held[place] = None
        if place in self.places:
            del self.places[place]
            self.places[place] = None


class ShareSessions:
    """All share sessions of one broker; `release` is called with each that ends."""

    def __init__(self, release: Callable[[ShareSession], None]) -> None:
        self._release = release
        self._sessions: dict[Key, ShareSession] = {}
        self._by_connection: dict[int, dict[ShareSession, None]] = {}
        self._places = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def places(self) -> int:
        """Partitions of all sessions together."""
        return self._places

    def at(self, key: Key, epoch: int, connection: int) -> ShareSession:
        """Return the session that a request opens, continues or closes.

        Raises ShareSessionUnknown, ShareEpochWrong, ShareSessionsFull.
        """
        known = self._sessions.get(key)
        if epoch == OPENING:
            if known is not None:
                self.end(known)
            elif len(self._sessions) >= SESSIONS_MAX:
                raise ShareSessionsFull(f"this broker has {SESSIONS_MAX} share sessions")
            made = self._sessions[key] = ShareSession(key, connection)
            self._by_connection.setdefault(connection, {})[made] = None
            return made
        if known is None:
            raise ShareSessionUnknown("the member has no share session here")
        if epoch != CLOSING:
            wanted = 1 if known.epoch == _EPOCH_MAX else known.epoch + 1
            if epoch != wanted:
                raise ShareEpochWrong(f"the session's next epoch is {wanted}, not {epoch}")
            known.epoch = epoch
        if known.connection != connection:
            self._leave_connection(known)
            known.connection = connection
            self._by_connection.setdefault(connection, {})[known] = None
        return known

    def change(
        self, session: ShareSession, added: Iterable[Place], forgotten: Iterable[Place]
    ) -> None:
        """Add partitions to a session and remove some; raises ShareSessionsFull."""
        before = len(session.places)
        for place in added:
            session.places[place] = None
        for place in forgotten:
            session.places.pop(place, None)
        self._places += len(session.places) - before
        if len(session.places) > SESSION_PLACES_MAX:
            self.end(session)
            raise ShareSessionsFull(f"a share session has at most {SESSION_PLACES_MAX} partitions")
        if self._places > PLACES_MAX:
            self.end(session)
            raise ShareSessionsFull(f"all share sessions together have {PLACES_MAX} partitions")

    def end(self, session: ShareSession) -> None:
        """End a session, and release what its member holds."""
        if session.is_ended:
            return
        session.is_ended = True
        del self._sessions[session.group, session.member]
        self._leave_connection(session)
        self._places -= len(session.places)
        self._release(session)

    def lost(self, connection: int) -> None:
        """End the sessions of a connection that is gone; some may go on with other ones."""
        for session in tuple(self._by_connection.get(connection, ())):
            self.end(session)

    def _leave_connection(self, session: ShareSession) -> None:
        of_connection = self._by_connection[session.connection]
        del of_connection[session]
        if not of_connection:
            del self._by_connection[session.connection]
