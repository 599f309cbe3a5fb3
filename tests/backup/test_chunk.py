"""Chunk files: what is written is read back, and every change is noticed."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaesque.backup.chunk import FOOTER_BYTES, ChunkWriter, read_batches, scan_chunk
from kafkaesque.backup.errors import DamagedBackup
from kafkaesque.backup.manifest import SavedChunk
from kafkaesque.errors import NewerFormat
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView

pytestmark = pytest.mark.requirement("LOG-5")


def a_batch(first: int, count: int = 2, value: bytes = b"v") -> BatchView:
    records = [
        Record(offset=first + number, timestamp_ms=7, key=b"k", value=value)
        for number in range(count)
    ]
    return BatchView(build_batch(records))


def write(folder: Path, views: Sequence[BatchView], first: int, end: int) -> SavedChunk:
    writer = ChunkWriter(folder, first)
    for view in views:
        writer.append(view)
    return writer.finish(end)


@settings(max_examples=30)  # each is synced to disk
@given(gaps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=6))
def test_batches_are_read_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("chunk")
    views = []
    position = 10
    for gap, count in gaps:
        views.append(a_batch(position + gap, count))
        position = views[-1].end_offset
    chunk = write(folder, views, 10, position + 1)
    path = folder / chunk.name
    assert scan_chunk(path) == chunk
    found = [bytes(view.data) for _, view in read_batches(path, chunk)]
    assert found == [bytes(view.data) for view in views]
    assert chunk.records == sum(count for _, count in gaps)
    assert [one.name for one in folder.iterdir()] == [chunk.name]


def test_any_flipped_bit_is_noticed_and_the_file_named(tmp_path: Path) -> None:
    chunk = write(tmp_path, [a_batch(0), a_batch(2), a_batch(9)], 0, 11)
    path = tmp_path / chunk.name
    sound = path.read_bytes()
    for position in range(len(sound)):
        for bit in (1, 128):
            damaged = bytearray(sound)
            damaged[position] ^= bit
            path.write_bytes(damaged)
            with pytest.raises((DamagedBackup, NewerFormat)) as raised:
                scan_chunk(path)
            assert str(path) in str(raised.value)


def test_damage_in_a_batch_names_its_first_byte(tmp_path: Path) -> None:
    views = [a_batch(0), a_batch(2), a_batch(4)]
    chunk = write(tmp_path, views, 0, 6)
    path = tmp_path / chunk.name
    damaged = bytearray(path.read_bytes())
    damaged[views[0].size + 70] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DamagedBackup) as raised:
        scan_chunk(path)
    assert raised.value.position == views[0].size


@pytest.mark.parametrize("missing", [1, FOOTER_BYTES, FOOTER_BYTES + 10, FOOTER_BYTES + 72])
def test_a_truncated_file_is_noticed(missing: int, tmp_path: Path) -> None:
    chunk = write(tmp_path, [a_batch(0), a_batch(2)], 0, 4)
    path = tmp_path / chunk.name
    path.write_bytes(path.read_bytes()[:-missing])
    with pytest.raises(DamagedBackup):
        scan_chunk(path)


def test_a_missing_batch_is_noticed(tmp_path: Path) -> None:
    views = [a_batch(0), a_batch(2), a_batch(4)]
    chunk = write(tmp_path, views, 0, 6)
    path = tmp_path / chunk.name
    data = path.read_bytes()
    size = views[0].size
    path.write_bytes(data[:size] + data[2 * size :])
    with pytest.raises(DamagedBackup, match="the footer says"):
        scan_chunk(path)


def test_batches_in_the_wrong_order_are_noticed(tmp_path: Path) -> None:
    chunk = write(tmp_path, [a_batch(2), a_batch(0)], 0, 4)
    with pytest.raises(DamagedBackup, match="cannot be here"):
        scan_chunk(tmp_path / chunk.name)


def test_a_renamed_chunk_is_noticed(tmp_path: Path) -> None:
    chunk = write(tmp_path, [a_batch(0)], 0, 2)
    other = (tmp_path / chunk.name).rename(tmp_path / f"{5:020}.batches")
    with pytest.raises(DamagedBackup, match="offsets 0 to before 2"):
        scan_chunk(other)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedBackup, match=r"gone\.batches"):
        scan_chunk(tmp_path / "gone.batches")


def test_a_chunk_without_its_final_name_is_unfinished(tmp_path: Path) -> None:
    writer = ChunkWriter(tmp_path, 0)
    writer.append(a_batch(0))
    writer.abandon()
    assert not list(tmp_path.glob("*.batches"))
