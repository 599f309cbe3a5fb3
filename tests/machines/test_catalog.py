"""The catalog decides without changing itself, and changes only by applying decisions."""

import pytest

from kafkaesque.errors import InvalidSetting, InvalidTopic, NewerFormat, TopicExists, UnknownTopic
from kafkaesque.machines.catalog.catalog import (
    ALL_PARTITIONS_MAX,
    ALL_SETTINGS_BYTES_MAX,
    NAME_CHARS_MAX,
    PARTITIONS_MAX,
    Catalog,
    Registration,
)
from kafkaesque.machines.catalog.catalog_errors import (
    InvalidAssignment,
    InvalidPartitions,
    UnknownTopicId,
)
from kafkaesque.machines.catalog.features import first_features, supported
from kafkaesque.machines.machine import MachineRecord

TOPIC_ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))


def apply(catalog: Catalog, records: list[MachineRecord]) -> None:
    for record in records:
        catalog.apply(record)


def with_orders(partitions: int = 3) -> Catalog:
    catalog = Catalog()
    apply(catalog, catalog.create_topic("orders", partitions, TOPIC_ID, {}))
    return catalog


@pytest.mark.requirement("LOG-3")
def test_a_topic_exists_once_its_record_was_applied_and_not_before() -> None:
    catalog = Catalog()
    records = catalog.create_topic("orders", 3, TOPIC_ID, {"retention.ms": "1000"})
    assert catalog.topics == {}
    apply(catalog, records)
    topic = catalog.topics["orders"]
    assert (topic.partitions, topic.topic_id) == (3, TOPIC_ID)
    assert topic.settings == {"retention.ms": "1000"}
    assert catalog.topic_by_id(TOPIC_ID) is topic


@pytest.mark.requirement("CORE-2")
def test_names_are_unique() -> None:
    with pytest.raises(TopicExists):
        with_orders().create_topic("orders", 1, bytes(16), {})


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\0b", "a b", "ä", "x" * (NAME_CHARS_MAX + 1)]
)
def test_names_that_are_unsafe_as_paths_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopic):
        Catalog().create_topic(name, 1, TOPIC_ID, {})


def test_all_topics_together_have_no_more_partitions_than_the_limit() -> None:
    catalog = Catalog()
    for number in range(ALL_PARTITIONS_MAX // PARTITIONS_MAX):
        topic_id = number.to_bytes(16, "big")
        apply(catalog, catalog.create_topic(f"t{number}", PARTITIONS_MAX - 1, topic_id, {}))
    apply(catalog, catalog.create_topic("last", 1, TOPIC_ID, {}))
    with pytest.raises(InvalidPartitions):
        catalog.create_topic("more", 2, OTHER_ID, {})
    with pytest.raises(InvalidPartitions):
        catalog.add_partitions("last", 3)
    apply(catalog, catalog.add_partitions("last", 2))


def test_the_settings_of_all_topics_together_have_a_limit() -> None:
    catalog = Catalog()
    apply(catalog, first_features(supported()))
    name = "leader.replication.throttled.replicas"
    text = ",".join(["0:1"] * 25_000)
    many = ALL_SETTINGS_BYTES_MAX // (len(name) + len(text))
    for number in range(many):
        topic_id = number.to_bytes(16, "big")
        apply(catalog, catalog.create_topic(f"t{number}", 1, topic_id, {name: text}))
    with pytest.raises(InvalidSetting):
        catalog.create_topic("more", 1, TOPIC_ID, {name: text})
    apply(catalog, catalog.create_topic("more", 1, TOPIC_ID, {}))
    with pytest.raises(InvalidSetting):
        catalog.set_settings("more", {name: text})
    catalog.set_settings("t0", {name: "*"})
    apply(catalog, catalog.delete_topic("t0"))
    catalog.set_settings("more", {name: text})


@pytest.mark.parametrize("count", [-1, 0, PARTITIONS_MAX + 1])
def test_an_invalid_number_of_partitions_is_refused(count: int) -> None:
    with pytest.raises(InvalidTopic):
        Catalog().create_topic("orders", count, TOPIC_ID, {})


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        Catalog().create_topic("orders", 1, TOPIC_ID, {"colour": "blue"})
    with pytest.raises(InvalidSetting):
        with_orders().set_settings("orders", {"retention.ms": "soon"})


def test_settings_are_replaced_as_a_whole() -> None:
    catalog = with_orders()
    apply(catalog, catalog.set_settings("orders", {"retention.ms": "5"}))
    apply(catalog, catalog.set_settings("orders", {"segment.ms": "7"}))
    assert catalog.topics["orders"].settings == {"segment.ms": "7"}


def test_partitions_can_be_added_and_never_removed() -> None:
    catalog = with_orders(3)
    apply(catalog, catalog.add_partitions("orders", 5))
    assert catalog.topics["orders"].partitions == 5
    for count in (5, 4, 0, PARTITIONS_MAX + 1):
        with pytest.raises(InvalidTopic):
            catalog.add_partitions("orders", count)


def test_a_deleted_topic_is_gone_and_its_name_is_free() -> None:
    catalog = with_orders()
    deletion = catalog.delete_topic("orders")
    apply(catalog, deletion)
    assert catalog.topic_by_id(TOPIC_ID) is None
    with pytest.raises(UnknownTopic):
        catalog.topic("orders")
    apply(catalog, catalog.create_topic("orders", 1, OTHER_ID, {}))
    apply(catalog, deletion)  # a tombstone that compaction left after its topic
    assert catalog.topic("orders").topic_id == OTHER_ID


def test_an_id_is_buried_only_by_its_tombstone() -> None:
    catalog = with_orders()
    assert catalog.buried == set()
    apply(catalog, catalog.delete_topic("orders"))
    assert catalog.buried == {TOPIC_ID}
    with pytest.raises(UnknownTopicId):
        catalog.topic_of_id(TOPIC_ID)


def test_names_that_differ_only_in_dots_and_underscores_are_refused() -> None:
    catalog = Catalog()
    apply(catalog, catalog.create_topic("a.b_c", 1, TOPIC_ID, {}))
    with pytest.raises(InvalidTopic, match=r"differs from a\.b_c"):
        catalog.create_topic("a_b.c", 1, OTHER_ID, {})
    catalog.create_topic("a-b-c", 1, OTHER_ID, {})


def test_clients_cannot_delete_or_change_internal_topics() -> None:
    catalog = Catalog()
    apply(catalog, catalog.create_topic("__consumer_offsets", 4, TOPIC_ID, {}))
    with pytest.raises(InvalidTopic):
        catalog.delete_topic("__consumer_offsets")
    with pytest.raises(InvalidTopic):
        catalog.add_partitions("__consumer_offsets", 8)


def test_no_producer_id_is_assigned_twice() -> None:
    catalog = Catalog()
    apply(catalog, catalog.give_producer_ids(1000))
    assert catalog.next_producer_id == 1000
    apply(catalog, catalog.give_producer_ids(1000))
    assert catalog.next_producer_id == 2000


def test_a_catalog_can_be_rebuilt_from_its_records() -> None:
    catalog = with_orders()
    apply(catalog, catalog.name_cluster("abc"))
    apply(catalog, catalog.give_producer_ids(10))
    apply(catalog, catalog.set_settings("orders", {"retention.ms": "5"}))
    again = Catalog()
    apply(again, list(catalog.records()))
    assert again.topics == catalog.topics
    assert (again.cluster_id, again.next_producer_id) == ("abc", 10)


def test_a_record_has_the_documented_format() -> None:
    (record,) = Catalog().create_topic("a", 1, TOPIC_ID, {})
    assert record.key == b"topic/" + TOPIC_ID
    end = bytes.fromhex("91910180800090")
    assert record.value == bytes.fromhex("9804a161c410") + TOPIC_ID + end


def test_a_record_of_a_later_version_is_not_skipped() -> None:
    with pytest.raises(NewerFormat):
        Catalog().apply(MachineRecord(b"cluster", bytes.fromhex("926301")))
    with pytest.raises(NewerFormat):
        Catalog().apply(MachineRecord(b"unheard-of", None))


def test_a_topic_of_the_first_format_is_on_the_first_broker() -> None:
    catalog = Catalog()
    value = bytes.fromhex("9501a161c410") + TOPIC_ID + b"\x02\x80"
    catalog.apply(MachineRecord(b"topic/" + TOPIC_ID, value))
    assert catalog.topics["a"].replicas == ((1,), (1,))


def test_each_partition_has_brokers_including_added_ones() -> None:
    catalog = Catalog()
    apply(catalog, catalog.create_topic("a", 2, TOPIC_ID, {}, [(1, 2), (2, 3)]))
    apply(catalog, catalog.add_partitions("a", 3, [(3, 1)]))
    assert catalog.topics["a"].replicas == ((1, 2), (2, 3), (3, 1))


@pytest.mark.parametrize("replicas", [[(1, 1)], [()], [(1,), (2,)]])
def test_a_partition_without_brokers_or_twice_on_one_is_refused(
    replicas: list[tuple[int, ...]],
) -> None:
    with pytest.raises(InvalidAssignment):
        Catalog().create_topic("a", 1, TOPIC_ID, {}, replicas)


def a_broker(directory: bytes = b"d" * 16, incarnation: int = 1) -> Registration:
    return Registration(
        node=2, host="b2", port=9092, rack="r", directory=directory, incarnation=incarnation
    )


def test_a_brokers_latest_registration_counts() -> None:
    catalog = Catalog()
    apply(catalog, catalog.register(a_broker()))
    apply(catalog, catalog.register(a_broker(incarnation=2)))
    assert catalog.brokers == {2: a_broker(incarnation=2)}
    again = Catalog()
    apply(again, list(catalog.records()))
    assert again.brokers == catalog.brokers


def test_a_broker_with_another_disk_is_not_accepted_as_the_old_one() -> None:
    catalog = Catalog()
    apply(catalog, catalog.register(a_broker()))
    with pytest.raises(InvalidAssignment):
        catalog.register(a_broker(directory=b"e" * 16))


def test_folders_still_to_be_removed_are_remembered() -> None:
    catalog = with_orders()
    apply(catalog, catalog.delete_topic("orders"))
    again = Catalog()
    apply(again, list(catalog.records()))
    assert again.buried == {TOPIC_ID}


def test_changed_topics_are_reported_once_in_the_order_of_their_changes() -> None:
    catalog = with_orders()
    assert catalog.take_changed() == [TOPIC_ID]
    apply(catalog, catalog.delete_topic("orders"))
    apply(catalog, catalog.create_topic("orders", 1, OTHER_ID, {}))
    assert catalog.take_changed() == [TOPIC_ID, OTHER_ID]
    assert catalog.take_changed() == []
