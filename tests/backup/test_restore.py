"""Real brokers, saved while they run and restored into others."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kafkaesque.backup.check import check
from kafkaesque.backup.errors import BackupError, DamagedBackup, TopicNotEmpty
from kafkaesque.backup.plan import Wanted
from kafkaesque.backup.restore import What
from kafkaesque.backup.target import Wishes
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import LATEST
from kafkaesque.errors import UnknownTopic
from kafkaesque.record.view import Codec
from kafkaesque.testing import Broker
from tests.backup.clusters import (
    NOW_MS,
    Notes,
    contents,
    everything,
    put,
    restore,
    save,
    seen,
    some_records,
)

pytestmark = pytest.mark.requirement("LOG-5")

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def source() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def admin(source: Broker) -> Iterator[Admin]:
    with Admin(source.bootstrap) as client:
        yield client


@pytest.fixture
def there(target: Broker) -> Iterator[Admin]:
    with Admin(target.bootstrap) as client:
        yield client


def delete_before(broker: Broker, topic: str, partition: int, offset: int) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = TopicPartition(topic, partition, offset)
    client.delete_records([wanted])[wanted].result(10)


def test_every_record_is_restored_with_key_value_headers_and_timestamp(
    source: Broker, target: Broker, admin: Admin, tmp_path: Path
) -> None:
    admin.topics.create("orders", partitions=3)
    for partition in range(3):
        put(admin, "orders", partition, some_records(40, name=str(partition)))
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    assert contents(target.bootstrap, "orders") == contents(source.bootstrap, "orders")
    assert sum(map(len, contents(target.bootstrap, "orders").values())) == 120


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_keep_their_codec(
    codec: Codec, source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("packed", partitions=1)
    put(admin, "packed", 0, some_records(30), codec=codec)
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    assert contents(target.bootstrap, "packed") == contents(source.bootstrap, "packed")
    assert {view.codec for view in there.batches.fetch("packed", 0, 0).batches} == {codec}


def test_a_backup_under_load_has_everything_from_before_its_start(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("busy", partitions=2)
    before = some_records(50, name="before")
    put(admin, "busy", 0, before)
    is_over = threading.Event()
    is_loading = threading.Event()

    def load() -> None:
        with Admin(source.bootstrap) as client:
            while not is_over.is_set():
                for partition in range(2):
                    put(client, "busy", partition, some_records(5, name="more"))
                is_loading.set()

    thread = threading.Thread(target=load)
    thread.start()
    is_loading.wait(10)
    try:
        saved = save(source.bootstrap, tmp_path / "b")
    finally:
        is_over.set()
        thread.join()
    restore(target.bootstrap, tmp_path / "b")
    found, original = contents(target.bootstrap, "busy"), contents(source.bootstrap, "busy")
    for one in saved.topics[0].partitions:
        assert found[one.partition] == original[one.partition][: one.end]
    assert found[0][:50] == seen(before)


def test_settings_and_partitions_are_restored(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    settings = {
        "retention.ms": str(3 * DAY_MS),
        "cleanup.policy": "compact",
        "max.message.bytes": "5000",
        "segment.bytes": "100000",
    }
    admin.topics.create("set", partitions=5, settings=settings)
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    found = {one.name: one.value for one in there.topics.settings("set") if not one.is_default}
    assert found == settings
    assert len(there.topics.describe("set").partitions) == 5


def test_a_setting_can_be_changed_or_left_out_at_the_restore(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("set", partitions=1, settings={"segment.bytes": "100000"})
    save(source.bootstrap, tmp_path / "b")
    wishes = Wishes(put={"retention.ms": "-1"}, drop=frozenset({"segment.bytes"}))
    restore(target.bootstrap, tmp_path / "b", What(wishes=wishes))
    found = {one.name: one.value for one in there.topics.settings("set") if not one.is_default}
    assert found == {"retention.ms": "-1"}


def test_append_times_stay_those_that_readers_saw(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create(
        "stamped", partitions=1, settings={"message.timestamp.type": "LogAppendTime"}
    )
    put(admin, "stamped", 0, some_records(12, time_ms=NOW_MS - 5 * DAY_MS))
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    found = contents(target.bootstrap, "stamped")
    assert found == contents(source.bootstrap, "stamped")
    assert found[0][0][3] > NOW_MS - DAY_MS
    kinds = {one.name: one.value for one in there.topics.settings("stamped")}
    assert kinds["message.timestamp.type"] == "LogAppendTime"


def test_a_partition_whose_first_records_are_deleted_begins_at_0_again(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("late", partitions=1)
    records = some_records(23)
    put(admin, "late", 0, records)
    delete_before(source, "late", 0, 7)  # in the middle of the second batch
    admin.groups.commit("g", {("late", 0): 9}, {("late", 0): "noted"})
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    found = everything(there, "late")[0]
    assert seen(found) == seen(records[7:])
    assert [one.offset for one in found] == list(range(16))
    committed = there.groups.committed("g")["late", 0]
    assert (committed.offset, committed.metadata) == (2, "noted")


def test_records_deleted_during_the_backup_are_noted(
    source: Broker, target: Broker, admin: Admin, tmp_path: Path
) -> None:
    admin.topics.create("leaky", partitions=1)
    records = some_records(60)
    put(admin, "leaky", 0, records)

    class Deleting(Notes):
        def moved(self, *, amount: int, size: int) -> None:
            if not self.notes:
                delete_before(source, "leaky", 0, 50)

    watch = Deleting()
    saved = save(source.bootstrap, tmp_path / "b", watch=watch)
    first_gone = saved.topics[0].records - 10
    note = f"partition 0 of topic leaky: the records from {first_gone} to before 50 were deleted"
    assert [one.startswith(note) for one in watch.notes] == [True]
    assert check(tmp_path / "b", watch).damages == ()
    restore(target.bootstrap, tmp_path / "b")
    expected = [*records[:first_gone], *records[50:]]
    assert contents(target.bootstrap, "leaky") == {0: seen(expected)}


def test_a_compacted_topic_is_restored_without_its_holes(
    target: Broker, there: Admin, tmp_path: Path
) -> None:
    broker = Broker(tmp_path / "data")
    at_rest = broker._config
    keen = replace(at_rest.housekeeping, check_interval_ms=20, retry_interval_ms=20)
    broker._config = replace(at_rest, housekeeping=keen)
    settings = {"cleanup.policy": "compact", "segment.bytes": "1024"}
    with broker, Admin(broker.bootstrap) as admin:
        admin.topics.create("table", partitions=1, settings=settings)
        keyed = [
            msgspec.structs.replace(one, key=b"k%d" % (one.offset % 4)) for one in some_records(60)
        ]
        put(admin, "table", 0, keyed)
        for _ in range(400):
            if everything(admin, "table")[0][0].offset > 0:
                break
            put(admin, "table", 0, keyed[:1])
        # From now on nothing is compacted, or the comparison below would be a race.
        admin.topics.alter("table", put={"min.compaction.lag.ms": str(DAY_MS)})
    broker._config = at_rest
    with broker, Admin(broker.bootstrap) as admin:
        original = everything(admin, "table")[0]
        assert original[0].offset > 0, "the broker does not compact"
        admin.groups.commit("g", {("table", 0): original[3].offset})
        admin.groups.commit("in-a-hole", {("table", 0): 2})
        save(broker.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    found = everything(there, "table")[0]
    assert seen(found) == seen(original)
    assert [one.offset for one in found] == list(range(len(found)))
    assert there.groups.offsets("g") == {("table", 0): 3}
    assert there.groups.offsets("in-a-hole") == {("table", 0): 0}
    kinds = {one.name: one.value for one in there.topics.settings("table")}
    assert kinds["cleanup.policy"] == "compact"


def test_groups_resume_at_the_same_records(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("orders", partitions=2)
    put(admin, "orders", 0, some_records(20))
    admin.groups.commit("billing", {("orders", 0): 13, ("orders", 1): 0})
    admin.groups.commit("audit", {("orders", 0): 20})
    saved = save(source.bootstrap, tmp_path / "b")
    assert [one.group for one in saved.groups] == ["audit", "billing"]
    done = restore(target.bootstrap, tmp_path / "b")
    assert list(done.groups) == ["audit", "billing"]
    assert there.groups.offsets("billing") == {("orders", 0): 13, ("orders", 1): 0}
    assert there.groups.offsets("audit") == {("orders", 0): 20}


def test_a_group_ahead_of_the_saved_end_is_moved_back_and_reported(
    source: Broker, admin: Admin, tmp_path: Path
) -> None:
    admin.topics.create("orders", partitions=1)
    put(admin, "orders", 0, some_records(5))
    admin.groups.commit("eager", {("orders", 0): 9})
    watch = Notes()
    saved = save(source.bootstrap, tmp_path / "b", watch=watch)
    assert saved.groups[0].positions[0].offset == 5
    assert "group eager was at offset 9" in watch.notes[0]
    assert saved.notes == tuple(watch.notes)


def test_only_what_matches_the_patterns_is_saved_and_restored(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    for name in ("orders", "order-lines", "letters"):
        admin.topics.create(name, partitions=1)
        put(admin, name, 0, some_records(3))
        admin.groups.commit(f"of-{name}", {(name, 0): 1})
    save(source.bootstrap, tmp_path / "b", Wanted(topics=("order*",), groups=("of-*",)))
    restore(target.bootstrap, tmp_path / "b", What(topics=("orders",)))
    names = [one.name for one in there.topics.list() if not one.is_internal]
    assert names == ["orders"]
    assert [one.group for one in there.groups.list()] == ["of-orders"]


def test_a_pattern_without_a_match_is_refused(source: Broker, tmp_path: Path) -> None:
    with pytest.raises(UnknownTopic, match="orders"):
        save(source.bootstrap, tmp_path / "b", Wanted(topics=("orders",)))


def test_a_topic_with_records_is_never_added_to(
    source: Broker, admin: Admin, tmp_path: Path
) -> None:
    admin.topics.create("orders", partitions=1)
    admin.topics.create("aaa", partitions=1)
    put(admin, "orders", 0, some_records(5))
    save(source.bootstrap, tmp_path / "b")
    admin.topics.delete("aaa")
    with pytest.raises(TopicNotEmpty, match="topic orders exists and is not empty"):
        restore(source.bootstrap, tmp_path / "b")
    assert [one.name for one in admin.topics.list() if not one.is_internal] == ["orders"]
    assert admin.topics.offsets([("orders", 0)], LATEST) == {("orders", 0): 5}


def test_a_topic_can_be_restored_under_another_name_beside_the_old_one(
    source: Broker, admin: Admin, tmp_path: Path
) -> None:
    for name in ("orders", "letters"):
        admin.topics.create(name, partitions=1)
        put(admin, name, 0, some_records(8, name=name))
    admin.groups.commit("g", {("orders", 0): 5})
    save(source.bootstrap, tmp_path / "b")
    restore(source.bootstrap, tmp_path / "b", What(prefix="old-", renames={"letters": "post"}))
    assert contents(source.bootstrap, "old-orders") == contents(source.bootstrap, "orders")
    assert contents(source.bootstrap, "post") == contents(source.bootstrap, "letters")
    assert admin.groups.offsets("g") == {("orders", 0): 5, ("old-orders", 0): 5}


def test_an_existing_empty_topic_is_used(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    for client in (admin, there):
        client.topics.create("orders", partitions=2)
    put(admin, "orders", 1, some_records(5))
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    assert contents(target.bootstrap, "orders") == contents(source.bootstrap, "orders")


def test_another_number_of_partitions_is_refused(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("orders", partitions=2)
    there.topics.create("orders", partitions=3)
    save(source.bootstrap, tmp_path / "b")
    with pytest.raises(TopicNotEmpty, match="number of partitions is 3 instead of 2"):
        restore(target.bootstrap, tmp_path / "b")


def test_fifty_partitions_and_empty_topics_are_restored(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("wide", partitions=50)
    admin.topics.create("empty", partitions=2)
    for partition in range(0, 50, 2):
        put(admin, "wide", partition, some_records(12, name=str(partition)), per_batch=3)
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    assert contents(target.bootstrap, "wide") == contents(source.bootstrap, "wide")
    assert contents(target.bootstrap, "empty") == {0: [], 1: []}


def test_records_older_than_the_retention_are_not_deleted_during_the_restore(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("old", partitions=1, settings={"retention.ms": "-1"})
    put(admin, "old", 0, some_records(10, time_ms=NOW_MS - 30 * DAY_MS))
    save(source.bootstrap, tmp_path / "b")
    restore(target.bootstrap, tmp_path / "b")
    assert contents(target.bootstrap, "old") == contents(source.bootstrap, "old")


def test_a_damaged_backup_is_refused_before_anything_is_changed(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    admin.topics.create("orders", partitions=1)
    put(admin, "orders", 0, some_records(30))
    save(source.bootstrap, tmp_path / "b")
    last = sorted((tmp_path / "b").rglob("*.batches"))[-1]
    data = bytearray(last.read_bytes())
    data[80] ^= 1
    last.write_bytes(data)
    with pytest.raises(DamagedBackup, match=last.name):
        restore(target.bootstrap, tmp_path / "b")
    assert [one for one in there.topics.list() if not one.is_internal] == []


def test_an_unfinished_backup_is_not_restored(
    source: Broker, target: Broker, admin: Admin, tmp_path: Path
) -> None:
    save(source.bootstrap, tmp_path / "b")
    (tmp_path / "b" / "manifest.json").rename(tmp_path / "b" / "plan.json")
    with pytest.raises(BackupError, match="was not finished"):
        restore(target.bootstrap, tmp_path / "b")


def test_a_group_in_use_is_named_and_the_rest_is_restored(
    source: Broker, target: Broker, admin: Admin, there: Admin, tmp_path: Path
) -> None:
    from confluent_kafka import Consumer

    admin.topics.create("orders", partitions=1)
    put(admin, "orders", 0, some_records(4))
    for name in ("busy", "idle"):
        admin.groups.commit(name, {("orders", 0): 2})
    save(source.bootstrap, tmp_path / "b")
    there.topics.create("other", partitions=1)
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "busy"})
    try:
        consumer.subscribe(["other"])
        while not consumer.assignment():
            consumer.poll(0.1)
        done = restore(target.bootstrap, tmp_path / "b")
    finally:
        consumer.close()
    assert list(done.groups) == ["idle"]
    assert "group busy was not set" in done.failures[0]
    again = restore(target.bootstrap, tmp_path / "b")
    assert list(again.groups) == ["busy", "idle"]
    assert contents(target.bootstrap, "orders") == contents(source.bootstrap, "orders")
