"""How much memory is touched before a measurement, and that nothing of it is left behind."""

from pathlib import Path

import pytest

from bench.field import machine
from bench.field.touching import bytes_to_touch, stored_bytes, touch
from bench.field.workload import FULL, MIB, Workload

PLENTY = 1 << 40


def named(name: str) -> Workload:
    """Return the workload of this name."""
    (found,) = [one for one in FULL.workloads if one.name == name]
    return found


@pytest.mark.parametrize(
    ("memory_free", "disk_free", "touched"),
    [(PLENTY, PLENTY, 64), (20 * MIB, PLENTY, 10), (PLENTY, 20 * MIB, 5), (0, PLENTY, 0)],
)
def test_only_a_share_of_the_free_memory_is_touched(
    memory_free: int, disk_free: int, touched: int
) -> None:
    found = bytes_to_touch(64 * MIB, memory_free=memory_free, disk_free=disk_free)
    assert found == touched * MIB


def test_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    assert 0 <= touch(tmp_path, 2 * MIB) <= 2 * MIB
    assert list(tmp_path.iterdir()) == []


def test_as_much_is_touched_as_a_measurement_may_store() -> None:
    assert stored_bytes(FULL, named("throughput-1024")) == FULL.bytes_max
    assert stored_bytes(FULL, named("throughput-10")) < FULL.bytes_max / 10
    assert stored_bytes(FULL, named("replay-1m")) == 2 * FULL.bytes_max
    assert stored_bytes(FULL, named("latency-1000")) == 300_000


def test_the_free_memory_is_at_most_the_total() -> None:
    assert 0 < machine.free_memory_bytes() < machine.memory_bytes()
