"""Clocks that are wrong: what is young stays, whatever they say."""

import pytest

from kafkaesque.broker.wall_clocks import ClockTold, Doubt
from kafkaesque.topic_settings import CleanupPolicy, TopicSettings
from kafkaesque.types import NodeId
from tests.broker.houses import HOUR_MS, House, a_house


def an_hour_kept(*, others: int = 0) -> House:
    """Return a house with records that are a minute old, of a topic that keeps them an hour."""
    house = a_house(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    house.others = set(range(2, 2 + others))
    for _ in range(30):
        house.write()
    house.pass_time(60_000)
    return house


def tell(house: House, node: NodeId, *, ahead_ms: int) -> None:
    """Let another broker tell its time."""
    wall_ms = house.clock.ms + ahead_ms
    house.clocks.receive(ClockTold(source=node, target=1, wall_ms=wall_ms))


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: what is old is deleted again",
)
def test_a_clock_that_jumps_ahead_deletes_nothing() -> None:
    house = an_hour_kept()
    house.clock.ahead_ms = 2 * HOUR_MS
    house.tick(100)
    house.pass_time(HOUR_MS // 4)
    assert len(house.offsets()) == 30
    assert (house.clocks.doubt, house.clocks.ahead_ms) == (Doubt.STEPPED, 2 * HOUR_MS)
    house.clock.ahead_ms = 0
    house.tick()
    assert house.clocks.doubt is None
    house.pass_time(HOUR_MS)
    house.run_until(lambda: house.offsets() == [])


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: what is old is deleted again",
)
def test_a_jump_that_nobody_can_contradict_is_believed_in_the_end() -> None:
    house = an_hour_kept()
    house.clock.ahead_ms = 50 * HOUR_MS
    house.pass_time(house.config.clock_pause_ms - 60_000)
    assert len(house.offsets()) == 30
    house.run_until(lambda: house.offsets() == [])


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: what is old is deleted again",
)
def test_a_broker_whose_time_most_others_do_not_have_deletes_nothing_by_age() -> None:
    house = a_house(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    house.others = {2, 3}
    house.clock.ahead_ms = 2 * HOUR_MS  # from the start: no jump to be seen
    for _ in range(30):
        house.write(at_ms=house.clock.ms)
    for _ in range(200):
        for node in house.others:
            tell(house, node, ahead_ms=0)
        house.pass_time(4_000, ticks=2)
    assert (len(house.offsets()), house.clocks.doubt) == (30, Doubt.APART)
    assert abs(house.clocks.ahead_ms - 2 * HOUR_MS) < house.config.clock_apart_ms_max
    tell(house, 2, ahead_ms=2 * HOUR_MS)
    house.tick()
    assert house.clocks.doubt is None, "two of three agree"


def test_a_broker_of_a_cluster_waits_for_the_time_of_a_majority() -> None:
    house = an_hour_kept(others=4)
    assert house.clocks.doubt is Doubt.UNHEARD
    tell(house, 2, ahead_ms=0)
    house.tick()
    assert house.clocks.doubt is Doubt.UNHEARD
    tell(house, 9, ahead_ms=0)  # who is no broker of this cluster
    house.tick()
    assert house.clocks.doubt is Doubt.UNHEARD
    tell(house, 3, ahead_ms=0)
    house.tick()
    assert house.clocks.doubt is None
    house.pass_time(2 * house.config.clock_heard_ms_max)
    assert house.clocks.doubt is Doubt.UNHEARD


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: what is old is deleted again",
)
def test_what_others_told_before_a_jump_does_not_confirm_it() -> None:
    house = an_hour_kept(others=2)
    tell(house, 2, ahead_ms=0)
    tell(house, 3, ahead_ms=0)
    house.tick()
    assert house.clocks.is_sound
    house.clock.ahead_ms = 2 * HOUR_MS
    house.tick(100)
    assert (house.clocks.doubt, len(house.offsets())) == (Doubt.STEPPED, 30)
    tell(house, 2, ahead_ms=2 * HOUR_MS)  # as after a suspended machine wakes up
    house.tick()
    assert house.clocks.is_sound


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: what is old is deleted again",
)
def test_size_limits_hold_whatever_the_clock_says() -> None:
    house = a_house(TopicSettings(segment_bytes=1024, retention_bytes=5_000, retention_ms=HOUR_MS))
    house.tick()
    house.clock.ahead_ms = 2 * HOUR_MS
    for _ in range(200):
        house.write(at_ms=house.clock.ms)
    log = house.replica.log
    house.run_until(lambda: log.segments.size_bytes < 5_000 + 2 * 1024)
    house.pass_time(120_000)
    assert log.segments.size_bytes >= 5_000


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: what is old is deleted again",
)
def test_nothing_young_is_compacted_while_the_clock_is_in_doubt() -> None:
    house = a_house(
        TopicSettings(
            cleanup_policy=CleanupPolicy.COMPACT,
            segment_bytes=1024,
            min_compaction_lag_ms=HOUR_MS,
        )
    )
    for _ in range(60):
        house.write("key")
    house.tick()
    house.clock.ahead_ms = 48 * HOUR_MS
    house.pass_time(120_000)
    assert len(house.offsets()) == 60


@pytest.mark.complains("clock_in_doubt node=1: the wall clock *")
def test_a_contradicted_clock_is_as_far_off_as_those_who_contradict_it_say() -> None:
    house = an_hour_kept(others=4)
    tell(house, 2, ahead_ms=0)
    tell(house, 3, ahead_ms=2 * HOUR_MS)
    house.tick()
    assert house.clocks.doubt is Doubt.APART
    assert abs(house.clocks.ahead_ms + 2 * HOUR_MS) < house.config.clock_apart_ms_max


def test_a_jump_right_after_the_look_at_the_clock_deletes_nothing() -> None:
    house = an_hour_kept()
    house.run_until(lambda: house.clocks.is_sound)
    for _ in range(100):
        house.clock.ms += house.config.retry_interval_ms
        house.clocks.tick(house.others)
        house.clock.ahead_ms = 2 * HOUR_MS
        house.keeper.tick()
        house.clock.ahead_ms = 0
    assert len(house.offsets()) == 30
