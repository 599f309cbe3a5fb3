"""Killed backups and restores can be continued."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.backup.check import check
from kafkaesque.backup.errors import BackupExists, TopicNotEmpty
from kafkaesque.backup.folder import locked
from kafkaesque.backup.plan import Wanted
from kafkaesque.backup.watch import Watch
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import LATEST
from kafkaesque.errors import FolderInUse
from kafkaesque.testing import Broker
from tests.backup.clusters import contents, die, put, restore, save, some_records

pytestmark = pytest.mark.requirement("LOG-5")


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    """Two topics, four partitions with records, and a group."""
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        for topic in ("letters", "orders"):
            admin.topics.create(topic, partitions=2)
            for partition in range(2):
                put(admin, topic, partition, some_records(60, name=f"{topic}{partition}"))
        admin.groups.commit("g", {("orders", 1): 33})
        yield broker


@pytest.fixture
def target() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def assert_same(source: Broker, target: Broker) -> None:
    for topic in ("letters", "orders"):
        assert contents(target.bootstrap, topic) == contents(source.bootstrap, topic)
    with Admin(target.bootstrap) as admin:
        assert admin.groups.offsets("g") == {("orders", 1): 33}


@pytest.mark.parametrize("moves", [1, 4, 9])
def test_a_killed_backup_continues_with_the_chunks_that_it_has(
    moves: int, source: Broker, target: Broker, tmp_path: Path
) -> None:
    die("save", tmp_path / "b", source.bootstrap, moves)
    assert not (tmp_path / "b" / "manifest.json").exists()
    kept = {path: path.stat().st_ino for path in (tmp_path / "b").rglob("*.batches")}
    save(source.bootstrap, tmp_path / "b")
    assert (
        kept.items()
        <= {path: path.stat().st_ino for path in (tmp_path / "b").rglob("*.batches")}.items()
    )
    assert moves < 9 or kept
    assert check(tmp_path / "b", Watch()).damages == ()
    assert not list((tmp_path / "b").rglob("*.new"))
    restore(target.bootstrap, tmp_path / "b")
    assert_same(source, target)


def test_a_chunk_damaged_meanwhile_is_fetched_again(source: Broker, tmp_path: Path) -> None:
    die("save", tmp_path / "b", source.bootstrap, 9)
    chunk = min((tmp_path / "b").rglob("*.batches"))
    sound = chunk.read_bytes()
    chunk.write_bytes(sound[:100] + bytes([sound[100] ^ 1]) + sound[101:])
    save(source.bootstrap, tmp_path / "b")
    assert check(tmp_path / "b", Watch()).damages == ()
    assert chunk.read_bytes() == sound


@pytest.mark.parametrize("moves", [1, 3, 17, 40])
def test_a_killed_restore_continues_and_duplicates_nothing(
    moves: int, source: Broker, target: Broker, tmp_path: Path
) -> None:
    save(source.bootstrap, tmp_path / "b")
    die("restore", tmp_path / "b", target.bootstrap, moves)
    assert list((tmp_path / "b").glob("restore-*.json"))
    restore(target.bootstrap, tmp_path / "b")
    assert_same(source, target)
    assert not list((tmp_path / "b").glob("restore-*"))


def test_a_repeatedly_killed_restore_is_finished_in_the_end(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    save(source.bootstrap, tmp_path / "b")
    for moves in (5, 20, 35):
        die("restore", tmp_path / "b", target.bootstrap, moves)
    restore(target.bootstrap, tmp_path / "b")
    assert_same(source, target)


def test_foreign_records_in_an_unfinished_restore_are_noticed(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    save(source.bootstrap, tmp_path / "b")
    die("restore", tmp_path / "b", target.bootstrap, 8)
    with Admin(target.bootstrap) as admin:
        put(admin, "letters", 0, some_records(1, name="foreign"))
        with pytest.raises(TopicNotEmpty, match="not written by this restore"):
            restore(target.bootstrap, tmp_path / "b")
        assert admin.topics.offsets([("letters", 1)], LATEST)[("letters", 1)] <= 60


def test_a_topic_deleted_from_an_unfinished_restore_is_created_again(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    save(source.bootstrap, tmp_path / "b")
    die("restore", tmp_path / "b", target.bootstrap, 40)
    with Admin(target.bootstrap) as admin:
        admin.topics.delete("letters")
    restore(target.bootstrap, tmp_path / "b")
    assert_same(source, target)


def test_an_unfinished_backup_of_something_else_is_not_continued(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    die("save", tmp_path / "b", source.bootstrap, 4)
    with pytest.raises(BackupExists, match="of other topics"):
        save(source.bootstrap, tmp_path / "b", Wanted(topics=("orders",)))
    with pytest.raises(BackupExists, match="of another cluster"):
        save(target.bootstrap, tmp_path / "b")


def test_a_complete_backup_is_not_overwritten(source: Broker, tmp_path: Path) -> None:
    save(source.bootstrap, tmp_path / "b")
    with pytest.raises(BackupExists, match="complete"):
        save(source.bootstrap, tmp_path / "b")


def test_a_folder_with_other_files_is_left_alone(source: Broker, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose")
    with pytest.raises(BackupExists, match="not empty"):
        save(source.bootstrap, tmp_path)


def test_two_backups_cannot_share_a_folder_at_once(source: Broker, tmp_path: Path) -> None:
    with locked(tmp_path / "b"), pytest.raises(FolderInUse):
        save(source.bootstrap, tmp_path / "b")


def test_a_recreated_topic_is_not_mixed_into_an_old_backup(tmp_path: Path) -> None:
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        admin.topics.create("orders", partitions=2)
        for partition in range(2):
            put(admin, "orders", partition, some_records(30))
        die("save", tmp_path / "b", broker.bootstrap, 2)
        admin.topics.delete("orders")
        admin.topics.create("orders", partitions=2)
        with pytest.raises(BackupExists, match="no longer the one"):
            save(broker.bootstrap, tmp_path / "b")
