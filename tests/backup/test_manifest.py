"""The manifest is written atomically, and every change to it is noticed."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaesque.backup.check import check, load
from kafkaesque.backup.errors import BackupError, DamagedBackup
from kafkaesque.backup.manifest import (
    FORMAT,
    MANIFEST_NAME,
    Backup,
    SavedChunk,
    SavedGroup,
    SavedPartition,
    SavedPosition,
    SavedTopic,
    Section,
    partition_folder,
    read_backup,
    write_sealed,
)
from kafkaesque.backup.watch import Watch
from kafkaesque.errors import NewerFormat
from tests.backup.test_chunk import a_batch, write

pytestmark = pytest.mark.requirement("LOG-5")

texts = st.text(max_size=20)
numbers = st.integers(0, 1 << 62)
chunks = st.builds(
    SavedChunk,
    first=numbers,
    end=numbers,
    batches=numbers,
    records=numbers,
    size=numbers,
    largest=numbers,
    crc32c=numbers,
)
partitions = st.builds(
    SavedPartition,
    partition=numbers,
    start=numbers,
    end=numbers,
    chunks=st.lists(chunks, max_size=2).map(tuple),
)
topics = st.builds(
    SavedTopic,
    name=st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True),
    number=numbers,
    topic_id=texts,
    replicas=numbers,
    settings=st.dictionaries(texts, texts, max_size=2),
    partitions=st.lists(partitions, max_size=2).map(tuple),
)
positions = st.builds(SavedPosition, topic=texts, partition=numbers, offset=numbers, metadata=texts)
groups = st.builds(SavedGroup, group=texts, positions=st.lists(positions, max_size=2).map(tuple))
backups = st.builds(
    Backup,
    cluster_id=st.none() | texts,
    begun_ms=numbers,
    ended_ms=st.none() | numbers,
    wanted_topics=st.lists(texts, max_size=2).map(tuple),
    wanted_groups=st.lists(texts, max_size=2).map(tuple),
    topics=st.lists(topics, max_size=2).map(tuple),
    groups=st.lists(groups, max_size=2).map(tuple),
    sections=st.dictionaries(
        texts,
        st.builds(Section, version=numbers, content=st.dictionaries(texts, texts)),
        max_size=2,
    ),
    notes=st.lists(texts, max_size=2).map(tuple),
)

TOPIC = SavedTopic(
    name="orders",
    number=0,
    topic_id="00",
    replicas=1,
    settings={"retention.ms": "1"},
    partitions=(SavedPartition(partition=0, start=0, end=4),),
)
BACKUP = Backup(cluster_id="c", begun_ms=1, topics=(TOPIC,), groups=())


def a_backup(root: Path) -> Backup:
    """Write a backup of one partition in two chunks."""
    folder = partition_folder(root, TOPIC, 0)
    folder.mkdir(parents=True)
    saved = (write(folder, [a_batch(0)], 0, 2), write(folder, [a_batch(2)], 2, 4))
    partition = replace(TOPIC.partitions[0], chunks=saved)
    backup = replace(BACKUP, topics=(replace(TOPIC, partitions=(partition,)),))
    write_sealed(root / MANIFEST_NAME, backup)
    return backup


@settings(max_examples=20)  # each is synced to disk
@given(backup=backups)
def test_a_manifest_is_read_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, backup: Backup
) -> None:
    path = tmp_path_factory.mktemp("manifest") / MANIFEST_NAME
    write_sealed(path, backup)
    assert read_backup(path) == backup


def test_any_flipped_bit_of_the_manifest_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / MANIFEST_NAME
    write_sealed(path, BACKUP)
    sound = path.read_bytes()
    for position in range(len(sound) - 1):  # the last byte is the end of the line
        damaged = bytearray(sound)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        with pytest.raises((DamagedBackup, NewerFormat), match=MANIFEST_NAME):
            read_backup(path)


def test_a_truncated_manifest_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / MANIFEST_NAME
    write_sealed(path, BACKUP)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DamagedBackup, match="damaged at byte"):
        read_backup(path)


def test_a_later_format_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / MANIFEST_NAME
    path.write_bytes(msgspec.json.encode({"format": FORMAT + 1, "crc32c": 0, "backup": {}}))
    with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}"):
        read_backup(path)


@pytest.mark.parametrize("name", ["../x", "..", "a/b", ""])
def test_a_name_that_leads_out_of_the_folder_is_damage(name: str, tmp_path: Path) -> None:
    path = tmp_path / MANIFEST_NAME
    write_sealed(path, replace(BACKUP, topics=(replace(TOPIC, name=name),)))
    with pytest.raises(DamagedBackup, match="not a valid topic name"):
        read_backup(path)


def test_a_sound_backup_has_no_damage(tmp_path: Path) -> None:
    backup = a_backup(tmp_path)
    checked = check(tmp_path, Watch())
    assert (checked.backup, checked.damages) == (backup, ())


def test_every_damaged_file_is_named_not_only_the_first(tmp_path: Path) -> None:
    a_backup(tmp_path)
    paths = sorted(tmp_path.rglob("*.batches"))
    paths[0].unlink()
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    assert [one.path for one in check(tmp_path, Watch()).damages] == [str(p) for p in paths]


def test_a_sound_chunk_of_another_backup_is_damage(tmp_path: Path) -> None:
    a_backup(tmp_path)
    folder = partition_folder(tmp_path, TOPIC, 0)
    write(folder, [a_batch(0, value=b"other")], 0, 2)
    (damage,) = check(tmp_path, Watch()).damages
    assert "another file" in damage.reason


def test_a_chunk_that_the_manifest_lacks_is_a_hole(tmp_path: Path) -> None:
    backup = a_backup(tmp_path)
    one = backup.topics[0].partitions[0]
    holed = replace(one, chunks=one.chunks[:1])
    topic = replace(backup.topics[0], partitions=(holed,))
    write_sealed(tmp_path / MANIFEST_NAME, replace(backup, topics=(topic,)))
    (damage,) = check(tmp_path, Watch()).damages
    assert "do not cover the offsets 0 to 4" in damage.reason


def test_a_folder_without_a_backup_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="holds no backup"):
        load(tmp_path)
