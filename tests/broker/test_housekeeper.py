"""The housekeeper deletes and compacts a little at a time, whatever else happens."""

from dataclasses import replace

import pytest

from kafkaesque.config import HousekeepingConfig
from kafkaesque.entry import Entry, TermOpened
from kafkaesque.log.errors import CorruptLog
from kafkaesque.raft.messages import AppendAccepted, VoteResponse
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, PowerLost
from kafkaesque.topic_settings import CleanupPolicy, TopicSettings
from tests.broker.houses import GROUP, HOUR_MS, SETTINGS, House, a_house
from tests.broker.nodes import THREE, a_batch, entry, heartbeat
from tests.broker.nodes import append as append_request
from tests.log.logs import START_MS, HandClock

COMPACTED = TopicSettings(cleanup_policy=CleanupPolicy.COMPACT, segment_bytes=1024)
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS


# ── retention ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.setting("retention.ms")
@pytest.mark.requirement("LOG-2")
def test_segments_whose_newest_record_has_expired_are_deleted() -> None:
    house = a_house(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    for _ in range(30):
        house.write()
    house.clock.ms += HOUR_MS // 2
    young = house.write("young")
    house.pass_time(HOUR_MS * 3 // 4)
    assert house.replica.log.start.first_offset > 0
    assert young in house.offsets()
    assert len(house.files()) <= 2


@pytest.mark.setting("retention.bytes")
@pytest.mark.requirement("LOG-2")
def test_the_oldest_segments_beyond_the_size_limit_are_deleted() -> None:
    house = a_house(TopicSettings(segment_bytes=1024, retention_bytes=5_000, retention_ms=-1))
    for _ in range(200):
        house.write()
    house.pass_time(60_000)
    log = house.replica.log
    house.run_until(lambda: log.segments.size_bytes < 5_000 + 2 * 1024)
    assert 5_000 <= log.segments.size_bytes < 5_000 + 2 * 1024
    assert house.offsets() == list(range(log.start.first_offset, 200))


def test_an_idle_topic_loses_its_active_segment_too_and_continues_at_the_next_offset() -> None:
    house = a_house(TopicSettings(retention_ms=HOUR_MS))
    for _ in range(5):
        house.write()
    house.pass_time(2 * HOUR_MS)
    log = house.replica.log
    assert (log.start.first_offset, log.end_offset, house.offsets()) == (5, 5, [])
    house.run_until(lambda: len(house.files()) == 1)
    assert house.write() == 5
    house.store.close()
    house.disk.crash(CrashPolicy.DROP_UNSYNCED)
    house.open()
    assert house.offsets() == [5]


def test_uncommitted_records_are_not_deleted() -> None:
    house = House(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    house.open(voters=THREE)
    entries = [Entry(0, 1, 1, TermOpened())]
    for number in range(30):
        batch = a_batch(b"v" * 100, base=number, term=1)
        entries.append(entry(1 + number, 1, batch))
    house.replica.step(append_request(1, 0, *entries, commit=0))
    house.pass_time(2 * HOUR_MS)
    assert (house.replica.log.end_offset, house.replica.log.start.first_offset) == (30, 0)
    house.replica.step(heartbeat(1, commit=31))
    house.pass_time(2 * HOUR_MS)
    assert house.replica.log.start.first_offset == 0, "only its leader deletes"
    house.replica.step(heartbeat(1, commit=31, low=30))
    assert house.replica.log.start.first_offset == 30
    house.run_until(lambda: len(house.files()) == 1)


def test_a_leader_deletes_nothing_uncommitted() -> None:
    house = House(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    house.open(voters=THREE)
    replica = house.replica
    replica.campaign()
    for is_pre in (True, False):
        term = replica.raft.term + is_pre
        answer = VoteResponse(source=2, target=1, term=term, is_pre=is_pre, is_granted=True)
        replica.step(answer)
        house.tick()
    mark = AppendAccepted(source=2, target=1, term=term, match=1, commit=0)
    replica.step(mark)
    assert replica.is_serving
    house.fill()
    house.pass_time(2 * HOUR_MS)
    assert (replica.log.end_offset, replica.log.start.first_offset) == (30, 0)
    replica.step(AppendAccepted(source=2, target=1, term=term, match=31, commit=1))
    house.pass_time(2 * HOUR_MS)
    assert replica.log.start.first_offset > 0


def test_without_limits_everything_is_kept() -> None:
    house = a_house(TopicSettings(segment_bytes=1024, retention_ms=-1))
    for _ in range(50):
        house.write()
    house.pass_time(100 * WEEK_MS)
    assert house.offsets() == list(range(50))


@pytest.mark.parametrize("timestamp_ms", [-1, 1 << 62, -(1 << 40)])
@pytest.mark.requirement("LOG-2")
def test_odd_timestamps_neither_retain_nor_expire_other_records(timestamp_ms: int) -> None:
    house = a_house(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    for _ in range(30):
        house.write(at_ms=timestamp_ms)
    house.pass_time(HOUR_MS // 2)
    assert len(house.offsets()) == 30
    house.pass_time(HOUR_MS)
    house.run_until(lambda: house.offsets() == [])


def test_one_look_deletes_only_some_segments_and_the_next_follows_soon() -> None:
    house = a_house(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    for _ in range(200):
        house.write()
    files = len(house.files())
    house.clock.ms += 2 * HOUR_MS
    house.tick()
    house.tick()
    assert files - len(house.files()) <= 2 * house.config.segments_per_look
    house.run_until(lambda: house.offsets() == [])


def test_a_changed_setting_takes_effect_at_the_next_look() -> None:
    house = a_house(TopicSettings(segment_bytes=1024, retention_ms=-1))
    for _ in range(30):
        house.write()
    house.pass_time(2 * HOUR_MS)
    assert len(house.offsets()) == 30
    house.change(retention_ms=HOUR_MS)
    house.run_until(lambda: house.offsets() == [])


def test_segment_bytes_take_effect_at_the_next_append() -> None:
    house = a_house(TopicSettings(segment_bytes=1 << 20))
    for _ in range(30):
        house.write()
    assert len(house.files()) == 1
    house.change(segment_bytes=1024)
    house.write()
    assert len(house.files()) == 2


# ── compaction ───────────────────────────────────────────────────────────────────────────────


def updates(house: House, count: int, keys: int = 4) -> None:
    for number in range(count):
        house.write(f"k{number % keys}", f"{number} " + "v" * 60)


def state(house: House) -> dict[bytes, bytes]:
    """The value of each key after reading all records."""
    found: dict[bytes, bytes] = {}
    for record in house.records():
        assert record.key is not None
        if record.value is None:
            found.pop(record.key, None)
        else:
            found[record.key] = record.value
    return found


def test_a_compacted_topic_keeps_the_latest_value_of_each_key_and_ignores_age() -> None:
    house = a_house(COMPACTED)
    updates(house, 200)
    wanted = state(house)
    house.run_until(lambda: house.keeper.passes == 1)
    assert state(house) == wanted
    assert len(house.records()) < 40
    house.pass_time(10 * WEEK_MS)
    assert state(house) == wanted


def test_a_pass_starts_only_when_enough_is_new() -> None:
    house = a_house(COMPACTED)
    updates(house, 400, keys=40)
    house.run_until(lambda: house.keeper.passes == 1)
    updates(house, 10)
    house.pass_time(HOUR_MS)
    assert house.keeper.passes == 1
    updates(house, 200)
    house.run_until(lambda: house.keeper.passes == 2)


def test_emptied_segments_are_removed_and_stay_removed_after_a_restart() -> None:
    house = a_house(COMPACTED)
    updates(house, 300)
    files = len(house.files())
    house.run_until(lambda: house.keeper.passes == 1)
    assert len(house.files()) <= 4 < files
    before = house.records()
    house.store.close()
    house.disk.crash(CrashPolicy.DROP_UNSYNCED)
    house.open()
    assert house.records() == before


@pytest.mark.setting("cleanup.policy")
def test_a_topic_with_both_policies_is_compacted_and_loses_old_records() -> None:
    house = a_house(
        TopicSettings(cleanup_policy=CleanupPolicy.BOTH, segment_bytes=1024, retention_ms=DAY_MS)
    )
    updates(house, 200)
    house.run_until(lambda: house.keeper.passes == 1)
    assert 0 < len(house.records()) < 40
    house.pass_time(2 * DAY_MS)
    house.run_until(lambda: house.records() == [])


@pytest.mark.setting("segment.ms")
def test_an_idle_segment_is_rolled_by_age_and_then_compacted() -> None:
    house = a_house(TopicSettings(cleanup_policy=CleanupPolicy.COMPACT, segment_ms=HOUR_MS))
    updates(house, 40)
    house.pass_time(2 * HOUR_MS)
    house.write("k0")
    house.run_until(lambda: house.keeper.passes == 1)
    assert len(house.records()) == 5


@pytest.mark.setting("min.compaction.lag.ms")
@pytest.mark.parametrize("timestamp_ms", [None, 1 << 62])
def test_young_records_are_not_compacted_whatever_their_timestamps(
    timestamp_ms: int | None,
) -> None:
    house = a_house(
        TopicSettings(
            cleanup_policy=CleanupPolicy.COMPACT, segment_bytes=1024, min_compaction_lag_ms=DAY_MS
        )
    )
    for number in range(100):
        house.write(f"k{number % 4}", at_ms=timestamp_ms)
    house.pass_time(HOUR_MS)
    assert len(house.records()) == 100
    house.pass_time(2 * DAY_MS)
    assert len(house.records()) < 40


@pytest.mark.setting("delete.retention.ms")
def test_tombstones_are_removed_after_readers_had_time_to_see_them() -> None:
    house = a_house(
        TopicSettings(
            cleanup_policy=CleanupPolicy.COMPACT, segment_bytes=1024, delete_retention_ms=HOUR_MS
        )
    )
    house.write("gone", "x")
    house.write("gone", None)
    updates(house, 50)
    house.run_until(lambda: house.keeper.passes == 1)
    assert b"gone" in [record.key for record in house.records()]
    house.pass_time(2 * HOUR_MS)
    updates(house, 100)
    house.run_until(lambda: house.keeper.passes == 2)
    assert b"gone" not in [record.key for record in house.records()]


def test_records_may_be_deleted_and_read_between_any_two_steps_of_a_pass() -> None:
    house = a_house(COMPACTED)
    house.config = HousekeepingConfig(steps_max=1)
    house.store.close()
    house.disk.kill()
    house.open()
    updates(house, 100)
    wanted = state(house)
    step = 0
    while house.keeper.passes == 0:
        house.clock.ms += 100
        house.tick()
        assert state(house) == {key: wanted[key] for key in state(house)}
        step += 1
        if step % 40 == 0 and step < 400:
            house.replica.log.trim(house.replica.log.start.first_offset + 3)
            house.store.flusher.kick()
        assert step < 5_000
    assert state(house) == wanted, "every key was written again after the deleted records"


@pytest.mark.complains("damage_found partition=*: the checksum of the batch at offset 1 is wrong")
def test_damage_is_noted_and_its_log_skipped_while_others_are_cleaned() -> None:
    house = House(COMPACTED)
    house.config = replace(house.config, scrub_bytes_per_second=0)  # it would be the first
    house.open(groups=2)
    for group in house.replicas:
        for number in range(100):
            house.write(f"k{number % 4}", group=group)
    house.disk.flip_bit(f"{GROUP}/{house.files()[0]}", 200, 3)
    house.run_until(lambda: house.keeper.passes == 1)
    house.pass_time(HOUR_MS)
    assert isinstance(house.keeper.errors[GROUP], CorruptLog)
    assert len(house.records("orders/1")) < 40
    assert house.replica.error is None
    assert house.write("k1") == 100


def test_compaction_without_disk_space_is_done_when_there_is_space() -> None:
    house = a_house(COMPACTED)
    updates(house, 100)
    house.disk.faults = DiskFaults(full_at_bytes=house.disk.used_bytes + 200)
    house.pass_time(HOUR_MS)
    house.disk.faults = DiskFaults()
    wanted = state(house)
    house.run_until(lambda: house.keeper.passes >= 1)
    house.pass_time(HOUR_MS)
    assert state(house) == wanted
    assert len(house.records()) < 40
    assert not any(name.endswith(".cleaned") for name in house.disk.list(GROUP))


# ── pace ─────────────────────────────────────────────────────────────────────────────────────


class BusyClock(HandClock):
    """A clock that advances each time it is read: everything takes a millisecond."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def monotonic_ms(self) -> int:
        self.ms += 1
        self.reads += 1
        return self.ms


def test_a_tick_ends_when_its_time_is_up() -> None:
    house = House(COMPACTED)
    clock = house.clock = BusyClock()
    house.open(groups=30)
    before = clock.reads
    house.keeper.tick()
    assert clock.reads - before <= 2 + house.config.slice_ms


def test_a_tick_takes_a_few_steps_and_all_logs_get_a_turn() -> None:
    house = House(TopicSettings(segment_bytes=1024, retention_ms=HOUR_MS))
    house.config = HousekeepingConfig(steps_max=3)
    house.open(groups=20)
    for group in house.replicas:
        for _ in range(10):
            house.write(group=group)
    house.clock.ms += 2 * HOUR_MS

    def trimmed() -> int:
        return sum(r.log.start.first_offset > 0 for r in house.replicas.values())

    house.tick()
    assert trimmed() == 3
    house.tick(6)
    assert trimmed() == 20


def test_an_idle_log_is_checked_once_per_interval() -> None:
    house = a_house()
    looks: list[int] = []
    house.keeper = type(house.keeper)(house.clock, house.config, house.clocks)

    def settings() -> TopicSettings:
        looks.append(house.clock.ms)
        return SETTINGS

    house.keeper.watch(house.replica, settings)
    for _ in range(10):
        house.clock.ms += house.config.check_interval_ms // 5
        house.tick(5)
    assert len(looks) == 2


def test_a_closed_log_is_forgotten() -> None:
    house = a_house(COMPACTED)
    updates(house, 100)
    house.tick()
    house.store.forget(GROUP)
    house.pass_time(HOUR_MS)
    assert house.keeper.errors == {}
    assert house.keeper.passes == 0


def test_a_stop_in_the_middle_of_a_pass_leaves_nothing_behind() -> None:
    house = House(COMPACTED)
    house.config = HousekeepingConfig(steps_max=1)
    house.open()
    updates(house, 100)

    def is_rewriting() -> bool:
        return any(name.endswith(".cleaned") for name in house.disk.list(GROUP))

    house.run_until(is_rewriting)
    house.keeper.stop()
    assert not is_rewriting()


# ── crashes ──────────────────────────────────────────────────────────────────────────────────

BOTH = TopicSettings(
    cleanup_policy=CleanupPolicy.BOTH, segment_bytes=1024, retention_ms=HOUR_MS, segment_ms=HOUR_MS
)


def life(house: House) -> None:
    house.open()
    updates(house, 24)
    house.pass_time(HOUR_MS // 8, ticks=30)
    updates(house, 24)
    house.pass_time(HOUR_MS // 2, ticks=30)
    house.write("late")
    house.pass_time(HOUR_MS * 3 // 4, ticks=30)


def test_the_run_to_be_interrupted_compacts_and_deletes() -> None:
    house = House(BOTH)
    life(house)
    assert house.keeper.passes >= 1
    assert house.replica.log.start.first_offset > 0
    assert 200 < house.disk.operations < 2_000


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("policy", [CrashPolicy.DROP_UNSYNCED, CrashPolicy.TORN])
def test_a_crash_at_any_point_loses_nothing_that_must_be_kept(policy: CrashPolicy) -> None:
    whole = House(BOTH)
    life(whole)
    for number in range(1, whole.disk.operations + 1, 3):
        house = House(BOTH, seed=number)
        house.disk.crash_after = number
        with pytest.raises(PowerLost):
            life(house)
        acknowledged = dict(house.acknowledged)
        house.disk.crash(policy)
        house.open()
        log = house.replica.log
        end = max((offset for offset, _ in acknowledged.values()), default=-1)
        assert log.end_offset > end, "the end never moves back"
        found = {record.key: (record.offset, record.value) for record in house.records()}
        for key, (offset, value) in acknowledged.items():
            if offset >= log.start.first_offset:
                # An append in progress when the power failed may follow it.
                assert found[key] == (offset, value) or found[key][0] > offset
        assert log.start.first_offset == 0 or house.clock.ms > START_MS + HOUR_MS
        house.write("on")
        house.pass_time(HOUR_MS // 8, ticks=20)
        assert house.failures == []


@pytest.mark.setting("min.cleanable.dirty.ratio")
def test_a_topic_sets_how_much_must_be_new_before_a_pass() -> None:
    house = a_house(replace(COMPACTED, min_cleanable_dirty_ratio=0.0))
    updates(house, 400, keys=40)
    house.run_until(lambda: house.keeper.passes == 1)
    updates(house, 20)
    house.run_until(lambda: house.keeper.passes > 1)


@pytest.mark.setting("max.compaction.lag.ms")
def test_max_compaction_lag_starts_a_pass() -> None:
    house = a_house(replace(COMPACTED, max_compaction_lag_ms=DAY_MS))
    updates(house, 400, keys=40)
    house.run_until(lambda: house.keeper.passes == 1)
    updates(house, 10)
    house.pass_time(DAY_MS - HOUR_MS)
    house.write("k0")
    assert house.keeper.passes == 1
    house.pass_time(2 * HOUR_MS)
    house.run_until(lambda: house.keeper.passes == 2)
    assert len(house.records()) < 60
