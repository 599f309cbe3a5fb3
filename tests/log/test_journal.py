"""The journal: what was written is read back, torn ends are cut, damage is refused."""

import random
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.config import LogConfig
from kafkaesque.errors import DiskFull, NewerFormat
from kafkaesque.log.errors import CorruptLog, DiskFailed, ForeignFile
from kafkaesque.log.journal import PATH, Journal
from kafkaesque.log.journal_records import JournalRecord, StateSaved, start_record
from kafkaesque.record.crc import crc32c
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, SimDisk
from tests.log.histories import histories
from tests.log.stores import (
    a_start,
    flip,
    journal_bytes,
    replace_file,
    rounds_start,
    state_dump,
    state_end,
)
from tests.sim.disks import Later

CONFIG = LogConfig(journal_rewrite_bytes=1 << 20)
SMALL = LogConfig(journal_rewrite_bytes=100)
HEADER_BYTES = 22
NODE = 7


def a_disk(seed: int = 1) -> SimDisk:
    """A disk whose syncs are done when they are called."""
    return SimDisk(random.Random(seed), faults=DiskFaults(page_bytes=32))


def saved(term: int, group: str = "a", vote: int | None = None) -> StateSaved:
    return StateSaved(group=group, term=term, vote=vote)


def write(journal: Journal, *records: JournalRecord) -> None:
    """One round with these records."""
    for record in records:
        journal.add(record)
    errors: list[OSError | None] = []
    journal.write_round([], [], errors.append)
    assert errors == [None]


def a_journal(disk: SimDisk, *, terms: int = 3, config: LogConfig = CONFIG) -> Journal:
    """A journal with these frames: the empty state, a start, and one frame for each term."""
    journal = Journal.create(disk, config, NODE)
    write(journal, start_record("a", a_start(), is_reset=False))
    for term in range(1, terms + 1):
        write(journal, saved(term, vote=term))
    return journal


def frame_starts(data: bytes) -> list[int]:
    """Where the frame of the first state begins, and those of the later rounds."""
    starts, position = [HEADER_BYTES], rounds_start(data)
    while position < len(data):
        starts.append(position)
        position += 20 + struct.unpack_from(">I", data, position + 4)[0]
    assert position == len(data)
    return starts


def dump(journal: Journal) -> dict[str, object]:
    return {group: state_dump(state) for group, state in journal.groups.items()}


@pytest.mark.requirement("LOG-4")
@given(histories(), st.data(), st.sampled_from([CONFIG, SMALL]))
def test_a_replay_gives_what_was_written_however_it_was_split_into_rounds(
    history: list[JournalRecord], data: st.DataObject, config: LogConfig
) -> None:
    disk = a_disk()
    journal = Journal.create(disk, config, NODE)
    for record in history:
        journal.add(record)
        if data.draw(st.booleans()):
            write(journal)
    write(journal)
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    again = Journal.open(disk, config)
    assert dump(again) == dump(journal)
    assert again.node == NODE


def test_a_new_journal_is_durable_and_empty() -> None:
    disk = a_disk()
    assert not Journal.exists(disk)
    Journal.create(disk, CONFIG, NODE)
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert Journal.exists(disk)
    journal = Journal.open(disk, CONFIG)
    assert (journal.node, journal.groups) == (NODE, {})
    assert not journal.has_additions


def test_an_addition_applies_at_once_and_is_written_with_the_next_round() -> None:
    disk = a_disk()
    journal = a_journal(disk, terms=1)
    before = journal_bytes(disk)
    journal.add(saved(9))
    assert journal.groups["a"].hard_state.term == 9
    assert journal.has_additions
    assert journal_bytes(disk) == before
    write(journal)
    assert not journal.has_additions
    assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 9


def test_a_round_without_additions_writes_no_frame() -> None:
    disk = a_disk()
    journal = a_journal(disk, terms=1)
    before = journal_bytes(disk)
    write(journal)
    assert journal_bytes(disk) == before


def test_round_numbers_continue_after_a_restart() -> None:
    disk = a_disk()
    a_journal(disk, terms=2)
    write(Journal.open(disk, CONFIG), saved(3))
    data = journal_bytes(disk)
    rounds = [struct.unpack_from(">Q", data, start + 12)[0] for start in frame_starts(data)]
    assert rounds == [1, 2, 3, 4, 5]


# --- torn tails --------------------------------------------------------------------------------


@pytest.mark.requirement("LOG-4")
def test_a_last_frame_cut_at_any_byte_is_dropped_and_writing_continues() -> None:
    disk = a_disk()
    a_journal(disk, terms=3)
    whole = journal_bytes(disk)
    last = frame_starts(whole)[-1]
    for size in range(last, len(whole)):
        replace_file(disk, PATH, whole[:size])
        journal = Journal.open(disk, CONFIG)
        assert journal.groups["a"].hard_state.term == 2
        assert journal_bytes(disk) == whole[:last]
        write(journal, saved(8))
        assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 8


@pytest.mark.parametrize("filler", [b"\x00", b"\xff", b"KJFR"])
def test_a_torn_frame_may_be_followed_by_anything_but_a_whole_frame(filler: bytes) -> None:
    disk = a_disk()
    a_journal(disk, terms=3)
    whole = journal_bytes(disk)
    last = frame_starts(whole)[-1]
    for kept in (0, 3, 12, 21):
        torn = whole[: last + kept] + filler * 20
        replace_file(disk, PATH, torn)
        assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 2


def test_a_flipped_bit_in_the_last_frame_drops_it_if_power_may_have_been_lost() -> None:
    disk = a_disk()
    a_journal(disk, terms=3)
    whole = journal_bytes(disk)
    for position in range(frame_starts(whole)[-1], len(whole)):
        replace_file(disk, PATH, flip(whole, position))
        assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 2


def test_a_cut_tail_does_not_return_when_the_power_fails_again() -> None:
    disk = a_disk()
    a_journal(disk, terms=3)
    last = frame_starts(journal_bytes(disk))[-1]
    replace_file(disk, PATH, journal_bytes(disk)[:-1])
    Journal.open(disk, CONFIG)
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert len(journal_bytes(disk)) == last


def test_the_last_frame_is_durable_once_the_journal_is_open_even_if_its_sync_had_failed() -> None:
    disk = a_disk()
    journal = a_journal(disk, terms=1)
    disk.fail_next_sync()
    journal.add(saved(5))
    errors: list[OSError | None] = []
    journal.write_round([], [], errors.append)
    assert errors[0] is not None
    disk.kill()
    assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 5
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 5


# --- damage ------------------------------------------------------------------------------------


def test_damage_before_a_whole_frame_is_refused_and_nothing_is_changed() -> None:
    disk = a_disk()
    a_journal(disk, terms=3)
    whole = journal_bytes(disk)
    for position in range(rounds_start(whole), frame_starts(whole)[-1]):
        damaged = flip(whole, position)
        replace_file(disk, PATH, damaged)
        with pytest.raises(CorruptLog) as caught:
            Journal.open(disk, CONFIG)
        assert caught.value.path == PATH
        assert caught.value.position in frame_starts(whole)
        assert journal_bytes(disk) == damaged


def test_every_damaged_byte_of_the_header_is_noticed_where_there_is_no_copy() -> None:
    disk = a_disk()
    whole = of_format_1(a_journal(disk))
    for position in range(HEADER_BYTES):
        replace_file(disk, PATH, flip(whole, position))
        with pytest.raises(ForeignFile if position < 8 else CorruptLog):
            Journal.open(disk, CONFIG)


def test_a_file_shorter_than_when_it_got_its_name_is_damaged() -> None:
    disk = a_disk()
    a_journal(disk)
    for size in reversed(range(rounds_start(journal_bytes(disk)))):
        replace_file(disk, PATH, journal_bytes(disk)[:size])
        with pytest.raises(CorruptLog, match=r"shorter|header|unreadable"):
            Journal.open(disk, CONFIG)


def test_a_file_of_another_program_is_not_touched() -> None:
    disk = a_disk()
    file = disk.create(PATH)
    file.write(0, b"Dear diary, today I wrote nothing at all.")
    before = journal_bytes(disk)
    with pytest.raises(ForeignFile):
        Journal.open(disk, CONFIG)
    assert journal_bytes(disk) == before


def test_a_journal_of_a_later_format_is_refused_by_name() -> None:
    disk = a_disk()
    a_journal(disk)
    replace_file(disk, PATH, with_version(journal_bytes(disk), 3))
    with pytest.raises(NewerFormat, match="newer Kafkaesque") as caught:
        Journal.open(disk, CONFIG)
    assert (caught.value.found, caught.value.known) == (3, 2)


def test_a_record_of_an_unknown_kind_is_of_a_later_format() -> None:
    disk = a_disk()
    a_journal(disk)
    body = msgspec.msgpack.encode([[99, "a", 1]])
    checked = struct.pack(">Q", 6) + body
    frame = b"KJFR" + struct.pack(">II", len(body), crc32c(checked)) + checked
    replace_file(disk, PATH, journal_bytes(disk) + frame)
    with pytest.raises(NewerFormat):
        Journal.open(disk, CONFIG)


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("size", [1, 4096])
def test_damage_anywhere_in_a_cleanly_stopped_journal_loses_nothing(size: int) -> None:
    disk = a_disk()
    journal = a_journal(disk)
    journal.end_run()
    journal.write_now()
    whole = journal_bytes(disk)
    for position in range(0, len(whole), size):
        damaged = flip(whole, position) if size == 1 else zeroed(whole, position, size)
        replace_file(disk, PATH, damaged)
        again = Journal.open(disk, CONFIG)
        assert dump(again) == dump(journal)
        assert again.is_stopped
        write(again, saved(9))
        assert journal_bytes(disk).startswith(whole[:HEADER_BYTES]), "it is whole again"
        assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 9


def test_damage_to_both_copies_of_the_state_is_refused_and_nothing_is_changed() -> None:
    disk = a_disk()
    journal = a_journal(disk)
    journal.write_now()
    whole = journal_bytes(disk)
    for position in range(state_end(whole)):
        damaged = flip(flip(whole, position), rounds_start(whole) - state_end(whole) + position)
        replace_file(disk, PATH, damaged)
        with pytest.raises(ForeignFile if position < 8 else CorruptLog):
            Journal.open(disk, CONFIG)
        assert journal_bytes(disk) == damaged


def test_the_only_frame_of_a_journal_of_format_1_is_not_a_torn_tail() -> None:
    disk = a_disk()
    journal = a_journal(disk)
    journal.write_now()
    whole = of_format_1(journal)
    replace_file(disk, PATH, whole)
    assert dump(Journal.open(disk, CONFIG)) == dump(journal)
    for damaged in [*(flip(whole, p) for p in range(22, len(whole))), whole[:22], whole[:-1]]:
        replace_file(disk, PATH, damaged)
        with pytest.raises(CorruptLog, match="no good copy"):
            Journal.open(disk, CONFIG)
        assert journal_bytes(disk) == damaged


def test_a_journal_of_format_1_is_converted_with_the_next_round() -> None:
    disk = a_disk()
    journal = a_journal(disk)
    journal.write_now()
    replace_file(disk, PATH, of_format_1(journal))
    opened = Journal.open(disk, CONFIG)
    assert opened.damaged_copy == "", "it never had a second one"
    write(opened, saved(9))
    assert journal_bytes(disk)[8:10] == b"\0\2"
    assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 9


def test_a_whole_last_frame_with_a_wrong_checksum_is_damage_if_the_machine_kept_running() -> None:
    disk = a_disk()
    journal = a_journal(disk, terms=2)
    journal.begin_run(disk.boot_id())
    write(journal)
    write(journal, saved(3))
    whole = journal_bytes(disk)
    last = frame_starts(whole)[-1]
    for position in range(last, len(whole)):
        damaged = flip(whole, position)
        replace_file(disk, PATH, damaged)
        with pytest.raises(CorruptLog, match="not lost power"):
            Journal.open(disk, CONFIG)
        assert journal_bytes(disk) == damaged
    for size in range(last, len(whole)):  # killed while it wrote
        replace_file(disk, PATH, whole[:size])
        assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 2
    replace_file(disk, PATH, flip(whole, len(whole) - 1))
    disk.crash(CrashPolicy.KEEP_ALL)
    assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 2


def of_format_1(journal: Journal) -> bytes:
    """The state of a journal as earlier versions wrote it."""
    journal.write_now()
    data = journal_bytes(journal._disk)  # type: ignore[arg-type]
    return with_version(data[: state_end(data)], 1)


def zeroed(data: bytes, position: int, size: int) -> bytes:
    return data[:position] + bytes(min(size, len(data) - position)) + data[position + size :]


def with_version(data: bytes, version: int) -> bytes:
    head = data[:8] + struct.pack(">H", version) + data[10:18]
    return head + struct.pack(">I", crc32c(head)) + data[HEADER_BYTES:]


# --- full disks and failed syncs ---------------------------------------------------------------


def test_a_full_disk_is_reported_and_earlier_writes_stay() -> None:
    disk = a_disk()
    journal = a_journal(disk, terms=2)
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + 10)
    journal.add(saved(9))
    with pytest.raises(DiskFull):
        journal.write_round([], [], lambda _: pytest.fail("the round never began"))
    disk.faults = DiskFaults()
    disk.kill()
    assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 2


def test_a_full_disk_during_a_rewrite_is_reported_and_the_old_journal_stays() -> None:
    disk = a_disk()
    journal = a_journal(disk, terms=4, config=SMALL)
    journal.add(saved(9))
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + 10)
    with pytest.raises(DiskFull):
        journal.write_round([], [], lambda _: pytest.fail("the round never began"))
    disk.faults = DiskFaults()
    disk.kill()
    assert Journal.open(disk, SMALL).groups["a"].hard_state.term == 4


def test_a_round_without_disk_space_can_be_tried_again() -> None:
    disk = a_disk()
    journal = a_journal(disk, terms=2)
    journal.add(saved(9))
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + 10)
    with pytest.raises(DiskFull):
        journal.write_round([], [], lambda _: pytest.fail("the round never began"))
    disk.faults = DiskFaults()
    journal.write_round([], [], lambda error: None)
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 9


def test_a_rewrite_without_room_falls_back_to_a_smaller_frame() -> None:
    disk = a_disk()
    journal = a_journal(disk, terms=4, config=SMALL)
    journal.add(saved(9))
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + 60)
    journal.write_round([], [], lambda error: None)
    disk.faults = DiskFaults()
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert disk.list("") == ["journal"]
    assert Journal.open(disk, SMALL).groups["a"].hard_state.term == 9


def test_a_failed_synchronous_sync_raises() -> None:
    disk = a_disk()
    journal = a_journal(disk)
    journal.add(saved(9))
    disk.fail_next_sync()
    with pytest.raises(DiskFailed):
        journal.write_now()


def test_write_now_is_durable_on_return() -> None:
    disk = SimDisk(random.Random(1), Later(), DiskFaults(page_bytes=32))
    journal = Journal.create(disk, CONFIG, NODE)
    journal.add(start_record("a", a_start(), is_reset=False))
    journal.add(saved(3))
    journal.write_now()
    assert not journal.has_additions
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert Journal.open(disk, CONFIG).groups["a"].hard_state.term == 3
