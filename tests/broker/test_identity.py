"""A data folder knows which broker owns it, and an incomplete one is refused."""

import random

import pytest

from kafkaesque.broker.storage.identity import (
    PATH,
    FolderIdentity,
    KnownPeer,
    load_identity,
    save_identity,
)
from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError, NewerFormat
from kafkaesque.log.errors import CorruptLog, ForeignFile
from kafkaesque.log.journal import Journal
from kafkaesque.server.peers.broker_identity import begin
from kafkaesque.sim.disk import CrashPolicy, SimDisk

SOMEBODY = FolderIdentity(
    cluster="a-cluster",
    node=3,
    directory=b"d" * 16,
    is_founder=False,
    has_begun=True,
    peers=(KnownPeer(node=1, host="here", port=9092, directory=b"e" * 16),),
)


def a_disk() -> SimDisk:
    return SimDisk(random.Random(1), lambda _, callback: callback())


def a_folder() -> SimDisk:
    disk = a_disk()
    Journal.create(disk, LogConfig(), SOMEBODY.node).close()
    save_identity(disk, SOMEBODY)
    return disk


def spoil(disk: SimDisk, position: int, data: bytes) -> None:
    file = disk.open(PATH)
    file.write(position, data)
    file.close()


def test_an_empty_folder_has_no_identity() -> None:
    assert load_identity(a_disk()) is None


def test_a_saved_identity_survives_a_crash() -> None:
    disk = a_folder()
    disk.crash(CrashPolicy.TORN)
    assert load_identity(disk) == SOMEBODY


def test_a_journal_without_an_identity_is_an_incomplete_copy() -> None:
    disk = a_folder()
    disk.remove(PATH)
    with pytest.raises(LogError, match="a journal but no identity"):
        load_identity(disk)


def test_an_identity_without_its_journal_must_not_vote_again() -> None:
    disk = a_folder()
    disk.remove("journal")
    with pytest.raises(LogError, match="an identity but no journal"):
        load_identity(disk)


def test_an_interrupted_first_start_can_be_continued() -> None:
    disk = a_disk()
    new = FolderIdentity(cluster="c", node=1, directory=b"d" * 16, is_founder=True)
    save_identity(disk, new)
    assert load_identity(disk) == new


def test_the_journal_of_another_broker_is_refused() -> None:
    disk = a_folder()
    assert begin(disk, SOMEBODY, SOMEBODY.node) == SOMEBODY
    with pytest.raises(
        LogError, match="belongs to broker 3, its journal to broker 4: files of two"
    ):
        begin(disk, SOMEBODY, 4)


def test_damage_is_distinguished_from_foreign_files_and_later_formats() -> None:
    disk = a_folder()
    spoil(disk, 20, b"\x00")
    with pytest.raises(CorruptLog):
        load_identity(disk)
    spoil(disk, 4, b"\x00\x09")
    with pytest.raises(NewerFormat):
        load_identity(disk)
    spoil(disk, 0, b"what")
    with pytest.raises(ForeignFile):
        load_identity(disk)
