"""Wrong clocks: young records are kept, whatever the clocks say."""

import pytest

from kafkaesque.ages import LEAPS_MAX, Ages, Leap, with_jump
from kafkaesque.broker.cluster.wall_clocks import ClockTold, Doubt
from kafkaesque.topic_settings import CleanupPolicy, TimestampType, TopicSettings
from kafkaesque.types import NodeId
from tests.broker.houses import HOUR_MS, House, a_house


def an_hour_kept(*, others: int = 0) -> House:
    """Return a house with records that are a minute old, of a topic that keeps them an hour."""
    house = a_house(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    house.others = set(range(2, 2 + others))
    house.fill()
    house.pass_time(60_000)
    return house


def tell(house: House, node: NodeId, *, ahead_ms: int) -> None:
    """Receive another broker's time."""
    wall_ms = house.clock.ms + ahead_ms
    house.clocks.receive(ClockTold(source=node, target=1, wall_ms=wall_ms))


@pytest.mark.event("clock_in_doubt", "clock_believed")
@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: deletion by age resumes",
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
    "clock_believed node=1: deletion by age resumes",
)
def test_a_jump_that_no_other_clock_can_contradict_is_eventually_believed() -> None:
    house = an_hour_kept()
    house.clock.ahead_ms = 50 * HOUR_MS
    house.pass_time(house.config.clock_pause_ms - 60_000)
    assert len(house.offsets()) == 30
    house.run_until(lambda: house.offsets() == [])


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: deletion by age resumes",
)
def test_a_broker_whose_time_differs_from_the_majority_deletes_nothing_by_age() -> None:
    house = House(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    house.others = {2, 3}
    house.clock.ahead_ms = 2 * HOUR_MS  # from the start, so there is no jump to see
    house.open()
    house.fill(at_ms=house.clock.ms)
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
    tell(house, 9, ahead_ms=0)  # not a broker of this cluster
    house.tick()
    assert house.clocks.doubt is Doubt.UNHEARD
    tell(house, 3, ahead_ms=0)
    house.tick()
    assert house.clocks.doubt is None
    house.pass_time(2 * house.config.clock_heard_ms_max)
    assert house.clocks.doubt is Doubt.UNHEARD


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: deletion by age resumes",
)
def test_times_received_before_a_jump_do_not_confirm_it() -> None:
    house = an_hour_kept(others=2)
    tell(house, 2, ahead_ms=0)
    tell(house, 3, ahead_ms=0)
    house.tick()
    assert house.clocks.is_sound
    house.clock.ahead_ms = 2 * HOUR_MS
    house.tick(100)
    assert (house.clocks.doubt, len(house.offsets())) == (Doubt.STEPPED, 30)
    tell(house, 2, ahead_ms=2 * HOUR_MS)  # like a suspended machine that wakes up
    house.tick()
    assert house.clocks.is_sound


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: deletion by age resumes",
)
def test_size_limits_apply_whatever_the_clock_says() -> None:
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
    "clock_believed node=1: deletion by age resumes",
)
def test_young_records_are_not_compacted_while_the_clock_is_in_doubt() -> None:
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
def test_a_contradicted_clock_is_off_by_what_the_others_say() -> None:
    house = an_hour_kept(others=4)
    tell(house, 2, ahead_ms=0)
    tell(house, 3, ahead_ms=2 * HOUR_MS)
    house.tick()
    assert house.clocks.doubt is Doubt.APART
    assert abs(house.clocks.ahead_ms + 2 * HOUR_MS) < house.config.clock_apart_ms_max


def test_a_jump_right_after_the_clock_was_checked_deletes_nothing() -> None:
    house = an_hour_kept()
    house.run_until(lambda: house.clocks.is_sound)
    for _ in range(100):
        house.clock.ms += house.config.retry_interval_ms
        house.clocks.tick(house.others)
        house.clock.ahead_ms = 2 * HOUR_MS
        house.keeper.tick()
        house.clock.ahead_ms = 0
    assert len(house.offsets()) == 30


# ── clocks that were behind ──────────────────────────────────────────────────────────────────


def kept_for_ten_minutes(timestamp_type: TimestampType = TimestampType.CREATE_TIME) -> House:
    settings = TopicSettings(
        segment_bytes=1024, retention_ms=HOUR_MS // 6, message_timestamp_type=timestamp_type
    )
    house = a_house(settings)
    house.others = {2, 3}
    return house


def live(house: House, ms: int) -> None:
    """Let time pass while the other brokers report the correct time."""
    until_ms = house.clock.ms + ms
    while house.clock.ms < until_ms:
        for node in house.others:
            tell(house, node, ahead_ms=0)
        house.pass_time(4_000, ticks=5)


def stamped_an_hour_behind(house: House) -> None:
    """Stamp records with a clock that is an hour behind, and then set it right."""
    house.clock.ahead_ms = -HOUR_MS
    live(house, 4_000)
    house.fill(at_ms=house.clock.now_ms())
    live(house, 60_000)
    assert house.clocks.doubt is Doubt.APART
    house.clock.ahead_ms = 0


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: deletion by age resumes",
)
def test_records_stamped_by_a_slow_clock_are_kept_when_it_is_set_right() -> None:
    house = kept_for_ten_minutes()
    stamped_an_hour_behind(house)
    live(house, 8 * 60_000)
    assert house.clocks.is_sound
    assert len(house.offsets()) == 30, "it is nine minutes old"
    live(house, 2 * 60_000)
    assert house.offsets() == []


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: deletion by age resumes",
)
def test_records_written_after_the_clock_was_set_right_are_kept_no_longer_than_promised() -> None:
    house = kept_for_ten_minutes()
    stamped_an_hour_behind(house)
    live(house, 4_000)
    house.fill()
    live(house, 11 * 60_000)
    assert house.offsets() == []


def test_records_stamped_by_another_leaders_clock_are_as_old_as_their_file() -> None:
    house = kept_for_ten_minutes(TimestampType.LOG_APPEND_TIME)
    house.fill(at_ms=house.clock.ms - HOUR_MS)
    live(house, 9 * 60_000)
    assert len(house.offsets()) == 30
    live(house, 2 * 60_000)
    assert house.offsets() == []


def test_old_records_that_a_producer_sends_are_deleted_at_once() -> None:
    house = kept_for_ten_minutes()
    house.fill(at_ms=house.clock.ms - HOUR_MS)
    live(house, 60_000)
    assert house.offsets() == []


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock *",
    "clock_believed node=1: deletion by age resumes",
)
def test_a_clock_set_back_and_then_too_far_ahead_makes_nothing_older() -> None:
    house = an_hour_kept()
    house.run_until(lambda: house.clocks.is_sound)
    stamp_ms = house.clock.now_ms()
    for ahead_ms in (-HOUR_MS, 2 * HOUR_MS):
        house.clock.ahead_ms = ahead_ms
        house.pass_time(8_000, ticks=2)
    house.run_until(lambda: house.clocks.is_sound)
    ages = house.clocks.ages
    assert ages is not None
    assert ages.of(stamp_ms) <= house.clock.ms - stamp_ms


def test_a_jump_back_cancels_earlier_jumps_ahead() -> None:
    leaps = with_jump(with_jump((), 1_000, 50), 2_000, 100)
    assert leaps == (Leap(1_000, 50), Leap(2_000, 100))
    assert with_jump(leaps, 3_000, -30) == (Leap(1_000, 50), Leap(2_000, 70))
    assert with_jump(leaps, 3_000, -120) == (Leap(1_000, 30),)
    assert with_jump(leaps, 3_000, -1_000) == ()


def test_of_many_jumps_the_oldest_are_merged() -> None:
    leaps: tuple[Leap, ...] = ()
    for number in range(LEAPS_MAX + 20):
        leaps = with_jump(leaps, number, 10)
    assert len(leaps) == LEAPS_MAX
    ages = Ages(now_ms=10_000, leaps=leaps)
    assert ages.of(0) == 10_000 - 10 * (LEAPS_MAX + 20)
    assert ages.of(LEAPS_MAX + 19) == 10_000 - (LEAPS_MAX + 19) - 10
    assert ages.of(5_000) == 5_000
