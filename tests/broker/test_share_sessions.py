"""Sessions of share groups' members: epochs, limits, connections, and what ends with them."""

import pytest

from kafkaesque.broker.queues import share_sessions
from kafkaesque.broker.queues.share_sessions import (
    CLOSING,
    OPENING,
    ShareEpochWrong,
    ShareSession,
    ShareSessions,
    ShareSessionsFull,
    ShareSessionUnknown,
)
from kafkaesque.machines.queues.share_records import Place

ME = ("workers", "me")
YOU = ("workers", "you")
TOPIC = bytes(range(16))
EPOCH_MAX = (1 << 31) - 1


def places(*indexes: int) -> list[Place]:
    return [(TOPIC, index) for index in indexes]


class Broker:
    """Sessions, and those that were released."""

    def __init__(self) -> None:
        self.released: list[ShareSession] = []
        self.sessions = ShareSessions(self.released.append)

    def counts_are_right(self) -> bool:
        kept = self.sessions._sessions.values()
        by_connection = self.sessions._by_connection
        return (
            self.sessions._places == sum(len(one.places) for one in kept)
            and all(by_connection.values())
            and {one for some in by_connection.values() for one in some} == set(kept)
            and all(one in by_connection[one.connection] for one in kept)
        )


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_epochs_count_up_and_a_wrong_one_changes_nothing(broker: Broker) -> None:
    sessions = broker.sessions
    opened = sessions.at(ME, OPENING, 1)
    assert sessions.at(ME, 1, 1) is opened
    for wrong in (1, 3, EPOCH_MAX, -2):
        with pytest.raises(ShareEpochWrong):
            sessions.at(ME, wrong, 1)
    assert sessions.at(ME, 2, 1) is opened
    assert not broker.released


def test_the_epoch_after_the_last_is_one(broker: Broker) -> None:
    opened = broker.sessions.at(ME, OPENING, 1)
    opened.epoch = EPOCH_MAX
    with pytest.raises(ShareEpochWrong):
        broker.sessions.at(ME, EPOCH_MAX, 1)
    broker.sessions.at(ME, 1, 1)
    assert opened.epoch == 1


@pytest.mark.parametrize("epoch", [1, 7, CLOSING])
def test_a_session_that_was_never_opened_is_unknown(broker: Broker, epoch: int) -> None:
    broker.sessions.at(YOU, OPENING, 1)
    with pytest.raises(ShareSessionUnknown):
        broker.sessions.at(ME, epoch, 1)
    assert len(broker.sessions) == 1


def test_opening_again_releases_what_the_old_session_held(broker: Broker) -> None:
    old = broker.sessions.at(ME, OPENING, 1)
    broker.sessions.change(old, places(0, 1), ())
    new = broker.sessions.at(ME, OPENING, 1)
    assert new is not old
    assert broker.released == [old]
    assert old.is_ended
    assert not new.is_ended
    assert not new.places
    assert broker.counts_are_right()


def test_a_session_ends_once(broker: Broker) -> None:
    old = broker.sessions.at(ME, OPENING, 1)
    new = broker.sessions.at(ME, OPENING, 1)
    broker.sessions.end(old)
    assert broker.released == [old]
    assert broker.sessions.at(ME, CLOSING, 1) is new, "closing does not end it: acks come first"
    broker.sessions.end(new)
    broker.sessions.end(new)
    assert broker.released == [old, new]
    assert len(broker.sessions) == 0


def test_partitions_are_counted_once_however_often_they_are_named(broker: Broker) -> None:
    session = broker.sessions.at(ME, OPENING, 1)
    other = broker.sessions.at(YOU, OPENING, 1)
    broker.sessions.change(session, places(0, 1, 1, 2), places(5))
    broker.sessions.change(session, places(2, 3), places(0, 3))
    broker.sessions.change(other, places(1), ())
    assert list(session.places) == places(1, 2)
    assert broker.counts_are_right()
    broker.sessions.end(session)
    assert broker.counts_are_right()
    assert broker.sessions._places == 1


def test_partitions_served_longest_ago_come_first(broker: Broker) -> None:
    session = broker.sessions.at(ME, OPENING, 1)
    broker.sessions.change(session, places(0, 1, 2), ())
    session.served(places(0)[0])
    session.served(places(9)[0])  # forgotten meanwhile: it holds records all the same
    assert list(session.places) == places(1, 2, 0)
    assert list(session.held) == places(0, 9)


def test_a_lost_connection_ends_its_own_sessions_only(broker: Broker) -> None:
    sessions = broker.sessions
    moved, left = sessions.at(ME, OPENING, 1), sessions.at(YOU, OPENING, 1)
    sessions.at(ME, 1, 2)
    assert broker.counts_are_right()
    sessions.lost(1)
    assert broker.released == [left]
    assert not moved.is_ended
    sessions.lost(1)
    sessions.lost(3)
    sessions.lost(2)
    assert broker.released == [left, moved]
    assert not sessions._by_connection
    assert broker.counts_are_right()


def test_a_refused_epoch_does_not_move_a_session_to_another_connection(broker: Broker) -> None:
    session = broker.sessions.at(ME, OPENING, 1)
    with pytest.raises(ShareEpochWrong):
        broker.sessions.at(ME, 5, 2)
    broker.sessions.lost(2)
    assert not session.is_ended


def test_sessions_are_limited_but_one_may_be_replaced(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_sessions, "SESSIONS_MAX", 2)
    first = broker.sessions.at(ME, OPENING, 1)
    broker.sessions.at(YOU, OPENING, 1)
    with pytest.raises(ShareSessionsFull):
        broker.sessions.at(("workers", "third"), OPENING, 1)
    assert broker.sessions.at(ME, OPENING, 1) is not first
    assert len(broker.sessions) == 2
    assert broker.counts_are_right()


@pytest.mark.parametrize(
    ("name", "others"), [("SESSION_PLACES_MAX", ()), ("PLACES_MAX", (0, 1))], ids=str
)
def test_partitions_are_limited_and_what_goes_beyond_leaves_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, name: str, others: tuple[int, ...]
) -> None:
    monkeypatch.setattr(share_sessions, name, 3)
    neighbour = broker.sessions.at(YOU, OPENING, 1)
    broker.sessions.change(neighbour, places(*others), ())
    session = broker.sessions.at(ME, OPENING, 1)
    broker.sessions.change(session, places(*range(3 - len(others))), ())
    broker.sessions.change(session, places(8), places(0))
    with pytest.raises(ShareSessionsFull):
        broker.sessions.change(session, places(9), ())
    assert broker.released == [session]
    assert not neighbour.is_ended
    assert broker.counts_are_right()
