"""Closed segments are read in the background: damage is noted, sound segments are sealed."""

import errno
from dataclasses import replace
from itertools import pairwise

import pytest

from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.seals import Seals
from kafkaesque.record.view import HEADER, split_batches, stamp
from kafkaesque.sim.disk import SimFile
from kafkaesque.sim.inode import CrashPolicy
from kafkaesque.topic_settings import CleanupPolicy, TopicSettings
from kafkaesque.types import GroupId
from tests.broker.houses import GROUP, SETTINGS, House, a_house

COMPACTED = TopicSettings(segment_bytes=1024, cleanup_policy=CleanupPolicy.COMPACT)


def filled(settings: TopicSettings = SETTINGS) -> House:
    house = a_house(settings)
    for number in range(60):
        house.write(f"k{number}", group=GROUP)
    return house


def pass_once(house: House) -> None:
    passes = house.scrubber.passes
    house.run_until(lambda: house.scrubber.passes > passes)


def sealed(house: House, group: GroupId = GROUP) -> list[int]:
    return [one.base for one in Seals.load(house.disk, group).all()]


def closed(house: House) -> list[int]:
    return [segment.base for segment in house.replica.log.segments.closed()]


def test_a_pass_reads_every_segment_once() -> None:
    house = filled()
    pass_once(house)
    segments = house.replica.log.segments
    assert house.scrubber.bytes_read == segments.size_bytes > 5000
    assert house.scrubber.passed_ms == house.clock.now_ms()
    assert not house.replica.damage.found


@pytest.mark.complains("damage_found partition=orders/0 offset=*")
def test_damage_in_the_active_segment_is_noted() -> None:
    house = filled()
    segments = house.replica.log.segments
    victim, _ = segments.span(segments.active_base)
    assert victim.size and not victim.is_closed
    house.disk.flip_bit(victim.path, victim.size - 5, 3)
    pass_once(house)
    (damage,) = house.replica.damage.found
    assert damage.offset == segments.end_offset - 1


@pytest.mark.parametrize("place", range(HEADER.size))
@pytest.mark.complains("damage_found partition=orders/0 offset=*")
def test_a_flipped_bit_in_the_header_of_the_last_batch_is_noted(place: int) -> None:
    house = filled()
    segments = house.replica.log.segments
    victim, _ = segments.span(segments.active_base)
    *_, last = split_batches(victim.file.read(0, victim.size))
    house.disk.flip_bit(victim.path, victim.size - last.size + place, 1)
    pass_once(house)
    assert house.replica.damage.found


@pytest.mark.complains("damage_found partition=orders/0 offset=*")
def test_a_log_whose_scan_ends_early_does_not_stop_the_scan_of_others() -> None:
    house = filled()
    broken = house.replica
    victim = broken.log.segments.closed()[0]
    house.scrubber._replicas = {"broken": _Dead(), GROUP: broken}  # type: ignore[dict-item]
    house.disk.flip_bit(victim.path, victim.size // 2, 3)
    with pytest.raises(RuntimeError):
        pass_once(house)
    assert house.scrubber.passes == 0, "its scan has not finished"
    with pytest.raises(RuntimeError):
        pass_once(house)
    pass_once(house)
    assert broken.damage.found


@pytest.mark.event("scrub_failed")
@pytest.mark.complains("scrub_failed partition=orders/0 *", "damage_found partition=orders/0 *")
def test_an_unreadable_log_is_tried_again_in_the_next_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = filled()
    victim = house.replica.log.segments.closed()[3]

    def fails(file: SimFile, position: int, length: int) -> bytes:
        raise OSError(errno.ENODEV, "no such device", file.path)

    with monkeypatch.context() as gone:
        gone.setattr(SimFile, "read", fails)
        pass_once(house)
    assert house.replica.error is None and not house.replica.damage.found
    house.disk.flip_bit(victim.path, victim.size // 2, 3)
    pass_once(house)
    assert house.replica.damage.found


class _Dead:
    """A replica with an unexpected fault."""

    @property
    def log(self) -> None:
        raise RuntimeError


@pytest.mark.complains("damage_found partition=orders/0 offset=*")
def test_damage_in_data_that_is_never_read_is_noted() -> None:
    house = filled()
    victim = house.replica.log.segments.closed()[3]
    house.disk.flip_bit(victim.path, victim.size // 2, 3)
    pass_once(house)
    (damage,) = house.replica.damage.found
    assert victim.base <= damage.offset < house.replica.log.segments.end_of(victim)
    pass_once(house)
    assert len(house.replica.damage.found) == 1, "it is not reported again"


@pytest.mark.complains("damage_found partition=orders/0 offset=*")
def test_an_offset_that_moved_into_a_hole_is_noted_and_never_sent() -> None:
    house = a_house(COMPACTED)
    for number in range(200):
        house.write(f"k{number % 7}" if number % 3 else f"once {number}")
    house.run_until(lambda: house.keeper.passes > 0)
    pass_once(house)
    segments = house.replica.log.segments
    victim, position, moved = place_before_a_hole(house)
    file = house.disk.open(victim)
    file.write(position, moved)
    pass_once(house)
    (damage,) = house.replica.damage.found
    for _ in range(2):
        with pytest.raises(CorruptLog):
            segments.read(damage.offset, 1)
        house.store.close()
        house.disk.kill()
        house.open()
        segments = house.replica.log.segments


def place_before_a_hole(house: House) -> tuple[str, int, bytes]:
    """A batch in the middle of a segment with a hole behind it; its header, one offset on."""
    for segment in house.replica.log.segments.closed():
        data = segment.file.read(0, segment.size)
        views = list(split_batches(data))
        position = 0
        for view, after in pairwise(views):
            if position and view.end_offset < after.base_offset:
                header = bytearray(view.data[:21])
                stamp(header, view.base_offset + 1, view.term)
                return segment.path, position, bytes(header)
            position += view.size
    raise AssertionError("compaction left no hole")


def test_segments_of_an_earlier_version_are_sealed() -> None:
    house = filled()
    house.store.close()
    house.disk.kill()
    house.disk.remove(f"{GROUP}/seals")
    house.open()
    house.tick()
    pass_once(house)
    house.tick(3)
    assert sealed(house) == closed(house)


def test_a_seal_lost_in_a_crash_is_written_again() -> None:
    house = filled()
    whole = house.replica.log.segments.seals.all()
    house.disk.crash(CrashPolicy.DROP_UNSYNCED)
    house.disk.remove(f"{GROUP}/seals")
    house.open()
    pass_once(house)
    house.tick(3)
    made = Seals.load(house.disk, GROUP).all()
    assert [one for one in made if one in whole] == made != []


@pytest.mark.event("seals_lost")
@pytest.mark.complains(
    "seals_lost partition=orders/0 reason=orders/0/seals is damaged",
)
def test_damaged_seals_are_written_again() -> None:
    house = filled()
    house.store.close()
    house.disk.kill()
    house.disk.flip_bit(f"{GROUP}/seals", 30, 1)
    house.open()
    pass_once(house)
    house.tick(3)
    assert sealed(house) == closed(house)


@pytest.mark.complains("damage_found partition=orders/0 offset=*")
def test_a_damaged_segment_is_not_sealed() -> None:
    house = filled()
    house.store.close()
    house.disk.kill()
    house.disk.remove(f"{GROUP}/seals")
    victim = house.files()[2]
    house.disk.flip_bit(f"{GROUP}/{victim}", 7, 2)
    house.open()
    pass_once(house)
    house.tick(3)
    assert sealed(house) == [base for base in closed(house) if base != int(victim[:20])]
    assert house.replica.damage.found


def test_reads_stay_within_the_rate_limit() -> None:
    house = a_house()
    house.config = replace(house.config, scrub_bytes_per_second=1000)
    for number in range(60):
        house.write(f"k{number}")
    house.scrubber = type(house.scrubber)(house.clock, house.config, house.replicas, house.heard)
    for second in range(1, 6):
        house.clock.ms += 1000
        house.tick(20)
        assert house.scrubber.bytes_read <= second * 1000 + 1024, "at most one piece more"
    assert house.scrubber.bytes_read >= 3000


def test_with_a_rate_of_zero_nothing_is_read() -> None:
    house = a_house()
    house.config = replace(house.config, scrub_bytes_per_second=0)
    house.scrubber = type(house.scrubber)(house.clock, house.config, house.replicas, house.heard)
    for number in range(60):
        house.write(f"k{number}")
    house.pass_time(60_000)
    assert (house.scrubber.bytes_read, house.scrubber.passes) == (0, 0)


def test_a_segment_that_is_deleted_meanwhile_is_skipped() -> None:
    house = a_house()
    house.config = replace(house.config, scrub_bytes_per_second=1)
    house.scrubber = type(house.scrubber)(house.clock, house.config, house.replicas, house.heard)
    for number in range(60):
        house.write(f"k{number}")
    house.clock.ms += 1000
    house.tick()
    assert house.scrubber.bytes_read > 0
    house.replica.log.trim(40)
    for _ in range(30):
        house.clock.ms += 3_600_000
        house.tick()
    assert not house.replica.damage.found
