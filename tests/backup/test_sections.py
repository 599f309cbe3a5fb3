"""The state of the whole cluster: always saved, restored on request, never silently."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from kafkaesque.backup.errors import BackupError, DamagedBackup
from kafkaesque.backup.manifest import MANIFEST_NAME, Section, read_backup, write_sealed
from kafkaesque.backup.restore import What
from kafkaesque.backup.sections import FEATURES, SETTINGS
from kafkaesque.client.address import parse_addresses
from kafkaesque.client.admin import Admin
from kafkaesque.client.blocking_connection import BlockingConnection
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.settings import ALL_BROKERS, Kind
from kafkaesque.clock import SystemClock
from kafkaesque.record.crc import crc32c
from kafkaesque.testing import Broker
from kafkaesque.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.apache_kafka import apache_kafka
from tests.backup.clusters import Notes, contents, put, restore, save, some_records

pytestmark = pytest.mark.requirement("LOG-5")

WITH_CLUSTER = What(is_with_cluster=True)
FEATURE = "transaction.version"
"""The feature whose level can be lowered again."""
SAFE_DOWNGRADE = 2
SECONDS_MAX = 10
SHOWN_SECONDS_MAX = 60
GROUP_SETTING = {"consumer.session.timeout.ms": "50000"}
BROKER_SETTING = {"log.retention.ms": "86400000"}


@pytest.fixture
def source() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def levels(bootstrap: str) -> dict[str, int]:
    with Admin(bootstrap) as admin:
        return {one.name: one.finalized for one in admin.features.list()}


def lower(bootstrap: str) -> None:
    """Lower the target to a level below that of the source."""
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + SECONDS_MAX * 1000
    address = parse_addresses(bootstrap)[0]
    connection = BlockingConnection.open(address, ClientConfig(), clock, deadline_ms)
    update = FeatureUpdateKey(feature=FEATURE, max_version_level=1, upgrade_type=SAFE_DOWNGRADE)
    request = UpdateFeaturesRequest(timeout_ms=SECONDS_MAX * 1000, feature_updates=(update,))
    said = connection.call(request, UpdateFeaturesResponse, deadline_ms)
    connection.close()
    assert said.error_code == 0, said.error_message


def with_sections(folder: Path, sections: Mapping[str, Section]) -> Path:
    """Give a backup other sections, like one of a later version."""
    path = folder / MANIFEST_NAME
    write_sealed(path, replace(read_backup(path), sections=sections))
    return folder


def test_feature_levels_are_restored_only_on_request(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    saved = save(source.bootstrap, tmp_path / "b")
    assert saved.sections[FEATURES].content == {"levels": levels(source.bootstrap)}
    lower(target.bootstrap)
    below = levels(target.bootstrap)
    assert below != levels(source.bootstrap)
    notes = Notes()
    assert restore(target.bootstrap, tmp_path / "b", watch=notes).sections == []
    assert levels(target.bootstrap) == below
    assert notes.notes == [
        "the state of the cluster is not restored; --with-cluster restores it: features"
    ]
    assert restore(target.bootstrap, tmp_path / "b", WITH_CLUSTER).sections == [FEATURES]
    assert levels(target.bootstrap) == levels(source.bootstrap)
    assert restore(target.bootstrap, tmp_path / "b", WITH_CLUSTER).sections == [FEATURES]


def test_a_level_that_the_target_has_passed_is_left_alone(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    lower(source.bootstrap)
    before = levels(target.bootstrap)
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b", WITH_CLUSTER)
    assert levels(target.bootstrap) == before


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        (
            {"users": Section(version=1, content={})},
            "the section users in version 1, which this Kafkaesque does not know: use a newer one, "
            "or leave it out with --without users",
        ),
        ({FEATURES: Section(version=2, content={})}, "the section features in version 2, which"),
        (
            {FEATURES: Section(version=1, content={"levels": {FEATURE: 99}})},
            "level 99 of transaction.version, and the target supports 2 at most",
        ),
        (
            {FEATURES: Section(version=1, content={"levels": {"strange.version": 1}})},
            "level 1 of strange.version, and the target does not know it",
        ),
        ({FEATURES: Section(version=1, content={"levels": 3})}, "a section is not valid"),
        (
            {
                SETTINGS: Section(
                    version=1, content={"holders": [{"kind": "MOON", "name": "", "settings": {}}]}
                )
            },
            "a MOON has no settings",
        ),
    ],
)
def test_an_impossible_restore_is_refused_before_anything_is_changed(
    sections: Mapping[str, Section], sentence: str, source: Broker, target: Broker, tmp_path: Path
) -> None:
    with Admin(source.bootstrap) as admin:
        admin.topics.create("orders", partitions=1)
        put(admin, "orders", 0, some_records(3))
    save(source.bootstrap, tmp_path / "b")
    folder = with_sections(tmp_path / "b", sections)
    with pytest.raises((BackupError, DamagedBackup), match=sentence):
        restore(target.bootstrap, folder, WITH_CLUSTER)
    with Admin(target.bootstrap) as admin:
        assert [info.name for info in admin.topics.list() if not info.is_internal] == []
    left_out = What(is_with_cluster=True, left_out=tuple(sections))
    assert restore(target.bootstrap, folder, left_out).sections == []
    assert contents(target.bootstrap, "orders") == contents(source.bootstrap, "orders")


def test_only_an_existing_section_can_be_left_out(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    save(source.bootstrap, tmp_path / "b")
    with pytest.raises(BackupError, match="the backup has no section user to leave out"):
        restore(target.bootstrap, tmp_path / "b", What(is_with_cluster=True, left_out=("user",)))


def test_a_backup_of_format_1_has_no_sections_and_can_be_read(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    with Admin(source.bootstrap) as admin:
        admin.topics.create("orders", partitions=1)
        put(admin, "orders", 0, some_records(3))
    saved = save(source.bootstrap, tmp_path / "b")
    old = msgspec.to_builtins(saved)
    del old["sections"]
    inner = msgspec.json.encode(old)
    sealed = {"format": 1, "crc32c": crc32c(inner), "backup": msgspec.Raw(inner)}
    (tmp_path / "b" / MANIFEST_NAME).write_bytes(msgspec.json.encode(sealed))
    assert restore(target.bootstrap, tmp_path / "b", WITH_CLUSTER).sections == []
    assert contents(target.bootstrap, "orders") == contents(source.bootstrap, "orders")


def test_cluster_wide_settings_are_restored_to_our_brokers(
    source: Broker, target: Broker, tmp_path: Path
) -> None:
    with Admin(source.bootstrap) as admin:
        admin.settings.alter(Kind.BROKER, ALL_BROKERS, BROKER_SETTING)
    save(source.bootstrap, tmp_path / "b")
    assert SETTINGS in restore(target.bootstrap, tmp_path / "b", WITH_CLUSTER).sections
    with Admin(target.bootstrap) as admin:
        changed = admin.settings.changed(Kind.BROKER, ALL_BROKERS)
        assert {one.name: one.value for one in changed} == BROKER_SETTING


def settings_of(admin: Admin) -> dict[Kind, dict[str, str]]:
    """Return the settings of the group and of all brokers."""
    named = {Kind.GROUP: "billing", Kind.BROKER: ALL_BROKERS}
    return {
        kind: {one.name: one.value or "" for one in admin.settings.changed(kind, name)}
        for kind, name in named.items()
    }


def await_settings(admin: Admin) -> None:
    """Wait for both settings: brokers of Apache Kafka accept a change before they show it."""
    deadline = time.monotonic() + SHOWN_SECONDS_MAX
    while True:
        found = settings_of(admin)
        is_there = found[Kind.BROKER].items() >= BROKER_SETTING.items()
        if is_there and found[Kind.GROUP] == GROUP_SETTING:
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@pytest.mark.compat
@pytest.mark.long
def test_settings_of_groups_and_cluster_wide_settings_are_restored(tmp_path: Path) -> None:
    """Between clusters of Apache Kafka: our brokers have no settings of groups."""
    with apache_kafka() as source:
        with Admin(source) as admin:
            admin.settings.alter(Kind.GROUP, "billing", GROUP_SETTING)
            admin.settings.alter(Kind.BROKER, ALL_BROKERS, BROKER_SETTING)
            await_settings(admin)
        saved = save(source, tmp_path / "b")
    everywhere, group = saved.sections[SETTINGS].content["holders"]
    assert group == {"kind": "GROUP", "name": "billing", "settings": GROUP_SETTING}
    assert (everywhere["kind"], everywhere["name"]) == ("BROKER", ALL_BROKERS)
    assert everywhere["settings"].items() >= BROKER_SETTING.items()  # Kafka sets one itself
    with apache_kafka() as target:
        restored = restore(target, tmp_path / "b", WITH_CLUSTER)
        assert restored.sections == [FEATURES, SETTINGS]
        with Admin(target) as admin:
            await_settings(admin)
            assert admin.settings.names(Kind.GROUP) == ["billing"]
