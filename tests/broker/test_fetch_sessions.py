"""Sessions are bounded: their number, the partitions of each, and the partitions of all."""

import random

import pytest

from kafkaesque.broker.partition.fetch_sessions import FetchSession, FetchSessions, Want, following
from kafkaesque.broker.partition.partition_errors import FetchSessionUnknown
from kafkaesque.config import FetchConfig

CONFIG = FetchConfig(sessions_max=3, session_partitions_max=5, sessions_partitions_max=10)


def wants(count: int, first: int = 0) -> list[Want]:
    return [Want("orders", place, 0, 100) for place in range(first, first + count)]


def some_sessions() -> FetchSessions:
    return FetchSessions(random.Random(1), CONFIG)


def opened(sessions: FetchSessions, count: int = 1) -> FetchSession:
    session = sessions.open(wants(count), uses_ids=False)
    assert session is not None
    return session


def goes_on(sessions: FetchSessions, session: FetchSession, more: int = 0) -> None:
    sessions.resume(
        session.session_id,
        following(session.epoch),
        wants(more, first=100),
        [],
        uses_ids=False,
    )


def test_the_least_recently_used_session_is_evicted() -> None:
    sessions = some_sessions()
    first, second, third = (opened(sessions) for _ in range(3))
    goes_on(sessions, first)
    opened(sessions)
    goes_on(sessions, first)
    goes_on(sessions, third)
    with pytest.raises(FetchSessionUnknown):
        goes_on(sessions, second)
    assert len(sessions) == 3


def test_a_session_does_not_remember_names_too_long_for_a_topic() -> None:
    sessions = some_sessions()
    long = [Want("t" * 250, 0, 0, 100)]
    assert sessions.open(long, uses_ids=False) is None
    session = opened(sessions)
    with pytest.raises(FetchSessionUnknown):
        sessions.resume(session.session_id, following(session.epoch), long, [], uses_ids=False)
    assert len(sessions) == sessions.partitions == 0


def test_the_partitions_of_all_sessions_together_are_bounded() -> None:
    sessions = some_sessions()
    old = opened(sessions, 5)
    opened(sessions, 5)
    opened(sessions, 1)
    assert (len(sessions), sessions.partitions) == (2, 6)
    with pytest.raises(FetchSessionUnknown):
        goes_on(sessions, old)


def test_a_consumer_with_too_many_partitions_gets_no_session() -> None:
    sessions = some_sessions()
    assert sessions.open(wants(6), uses_ids=False) is None
    assert (len(sessions), sessions.partitions) == (0, 0)


def test_a_session_that_grows_too_large_is_closed() -> None:
    sessions = some_sessions()
    session = opened(sessions, 5)
    with pytest.raises(FetchSessionUnknown):
        goes_on(sessions, session, more=1)
    assert (len(sessions), sessions.partitions) == (0, 0)


def test_epochs_wrap_around_to_one_and_never_ask_for_a_full_fetch() -> None:
    assert following(0) == 1
    assert following(2**31 - 1) == 1


def test_ids_are_random_and_never_zero() -> None:
    sessions = some_sessions()
    ids = [opened(sessions).session_id for _ in range(100)]
    assert len(set(ids)) == 100
    assert 0 not in ids
    assert sorted(ids) != ids
