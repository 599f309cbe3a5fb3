"""The catalog decides without changing itself, and changes only by what was decided."""

import pytest

from kafkaesque.errors import InvalidTopic, NewerFormat, TopicExists
from kafkaesque.machines.catalog import (
    NAME_CHARS_MAX,
    PARTITIONS_MAX,
    Catalog,
    CatalogRecord,
    ClusterNamed,
    encode_record,
)

TOPIC_ID = bytes(range(16))


def apply(catalog: Catalog, records: list[CatalogRecord]) -> None:
    for record in records:
        catalog.apply(encode_record(record))


@pytest.mark.requirement("LOG-3")
def test_a_topic_is_there_once_its_record_was_applied_and_not_before() -> None:
    catalog = Catalog()
    records = catalog.create_topic("orders", 3, TOPIC_ID)
    assert catalog.topics == {}
    apply(catalog, records)
    topic = catalog.topics["orders"]
    assert (topic.partitions, topic.topic_id) == (3, TOPIC_ID)
    assert catalog.topic_by_id(TOPIC_ID) is topic


@pytest.mark.requirement("CORE-2")
def test_names_are_unique() -> None:
    catalog = Catalog()
    apply(catalog, catalog.create_topic("orders", 3, TOPIC_ID))
    with pytest.raises(TopicExists):
        catalog.create_topic("orders", 1, bytes(16))


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\0b", "a b", "ä", "x" * (NAME_CHARS_MAX + 1)]
)
def test_names_that_no_path_should_see_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopic):
        Catalog().create_topic(name, 1, TOPIC_ID)


@pytest.mark.parametrize("count", [-1, 0, PARTITIONS_MAX + 1])
def test_a_number_of_partitions_that_makes_no_sense_is_refused(count: int) -> None:
    with pytest.raises(InvalidTopic):
        Catalog().create_topic("orders", count, TOPIC_ID)


def test_a_cluster_is_named_once() -> None:
    catalog = Catalog()
    apply(catalog, [ClusterNamed(cluster_id="abc")])
    assert catalog.cluster_id == "abc"


def test_a_record_is_written_as_its_page_says() -> None:
    (record,) = Catalog().create_topic("a", 1, TOPIC_ID)
    assert encode_record(record) == bytes.fromhex("9401a161c410") + TOPIC_ID + b"\x01"


def test_a_record_of_a_later_version_is_not_passed_over() -> None:
    with pytest.raises(NewerFormat):
        Catalog().apply(bytes.fromhex("926301"))
