"""The settings of a seed: drawn from it alone, varied, and survivable."""

import random

from kafkaesque.sim.settings import Faults, Settings, draw
from kafkaesque.topic_settings import FlushPolicy

DRAWN = [draw(random.Random(seed)) for seed in range(1_000)]
KINDS = [name for name in Faults.__slots__ if name != "pause_mean"]


def of(kind: str) -> list[Settings]:
    return [settings for settings in DRAWN if kind in settings.faults.kinds()]


def test_the_settings_are_a_function_of_the_seed() -> None:
    assert [draw(random.Random(seed)) for seed in range(100)] == DRAWN[:100]


def test_seeds_differ() -> None:
    assert len(set(map(repr, DRAWN))) > 900


def test_every_fault_occurs_in_some_seeds_and_is_absent_in_others() -> None:
    shares = {kind: len(of(kind)) / len(DRAWN) for kind in KINDS}
    assert all(0.1 < share < 0.9 for share in shares.values()), shares


def test_some_seeds_have_hardly_a_fault_and_others_many() -> None:
    counts = {len(settings.faults.kinds()) for settings in DRAWN}
    assert min(counts) <= 1
    assert max(counts) >= 8


def test_bits_flip_only_where_voters_stay_and_nothing_is_compacted_or_wiped() -> None:
    assert of("bit_flips")
    for settings in of("bit_flips"):
        faults = settings.faults
        assert not (faults.voter_changes or faults.compactions or faults.wipes)


def test_disks_are_damaged_only_where_there_are_enough_copies() -> None:
    for settings in of("bit_flips") + of("wipes"):
        assert settings.nodes in (3, 5)


def test_where_copies_are_destroyed_or_moved_every_counted_entry_is_synced() -> None:
    lazy = [s for s in DRAWN if s.flush is not FlushPolicy.ALWAYS]
    for settings in [settings for settings in lazy if settings.nodes > 1]:
        faults = settings.faults
        assert not (faults.voter_changes or faults.wipes or faults.bit_flips)
    assert {settings.nodes > 1 for settings in lazy} == {True, False}
    assert {settings.flush for settings in DRAWN if settings.nodes == 1} == set(FlushPolicy)


def test_kinds_names_the_faults_that_happen_and_not_how_often() -> None:
    assert Faults().kinds() == []
    assert Faults(pause_mean=7, kills=True, trims=True).kinds() == ["kills", "trims"]


def test_limits_are_tiny_in_many_seeds_because_bugs_hide_in_rare_events() -> None:
    assert any(settings.raft.append_bytes_max == 1 for settings in DRAWN)
    assert any(settings.raft.inflight_max == 1 for settings in DRAWN)
    assert any(settings.log.segment_bytes_max == 256 for settings in DRAWN)
