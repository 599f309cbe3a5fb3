"""Levels rise when every broker supports them, and older brokers are refused afterwards."""

from collections.abc import Mapping

import pytest

from kafkaesque.errors import InvalidSetting
from kafkaesque.machines.catalog.catalog import Catalog, Registration
from kafkaesque.machines.catalog.catalog_errors import InvalidLevel, UnsupportedLevel
from kafkaesque.machines.catalog.features import (
    CATALOG_VERSION,
    TRANSACTION_VERSION,
    Range,
    finalize,
    first_features,
    supported,
)
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.topic_settings import DEFAULTS, TOPIC_SETTINGS, value_text

OLD, NEW = supported(1), supported()


def apply(catalog: Catalog, records: list[MachineRecord]) -> None:
    for record in records:
        catalog.apply(record)


def a_broker(node: int, levels: Mapping[str, Range]) -> Registration:
    return Registration(
        node=node,
        host="here",
        port=9092,
        rack="",
        directory=bytes([node]) * 16,
        incarnation=1,
        levels=levels,
    )


def a_catalog(*ranges: Mapping[str, Range]) -> Catalog:
    catalog = Catalog()
    for node, levels in enumerate(ranges, 1):
        apply(catalog, catalog.register(a_broker(node, levels)))
    return catalog


def raised(catalog: Catalog, **levels: int) -> list[MachineRecord]:
    changes = {name.replace("_", "."): level for name, level in levels.items()}
    return finalize(catalog.finalized, catalog.brokers.values(), changes)


def test_a_new_cluster_starts_at_the_highest_levels_of_its_first_broker() -> None:
    catalog = Catalog()
    apply(catalog, first_features(NEW))
    assert catalog.finalized.levels == {name: last for name, (_, last) in NEW.items()}
    assert catalog.finalized.epoch == 1


def test_a_cluster_started_by_an_older_version_has_no_levels() -> None:
    assert first_features(OLD) == []
    assert Catalog().finalized.levels[CATALOG_VERSION] == 1


def test_a_level_is_finalised_when_every_broker_supports_it() -> None:
    catalog = a_catalog(dict(NEW), dict(NEW))
    apply(catalog, raised(catalog, catalog_version=2))
    assert (catalog.finalized.levels[CATALOG_VERSION], catalog.finalized.epoch) == (2, 1)
    assert raised(catalog, catalog_version=2) == []


@pytest.mark.parametrize("other", [dict(OLD), {}], ids=["old", "says nothing"])
def test_a_level_that_some_broker_does_not_support_is_refused(other: dict[str, Range]) -> None:
    catalog = a_catalog(dict(NEW), other)
    with pytest.raises(InvalidLevel, match=r"broker 2 supports catalog.version 1 to 1, not 2"):
        raised(catalog, catalog_version=2)


@pytest.mark.parametrize("levels", [dict(OLD), {}], ids=["old", "says nothing"])
def test_a_broker_too_old_for_the_finalised_levels_is_refused(
    levels: dict[str, Range],
) -> None:
    catalog = a_catalog(dict(NEW))
    apply(catalog, raised(catalog, catalog_version=2))
    with pytest.raises(UnsupportedLevel, match=r"broker 2 supports .* level 2: use a newer"):
        catalog.register(a_broker(2, levels))
    with pytest.raises(UnsupportedLevel):
        catalog.admit(bytes(16), "here", 9092, "", levels)


def test_an_older_version_stops_reading_a_log_finalised_above_its_level() -> None:
    with pytest.raises(UnsupportedLevel, match=r"this broker supports catalog.version 1 to 1"):
        apply(Catalog(OLD), first_features(NEW))


def test_the_level_of_the_catalog_never_decreases() -> None:
    catalog = a_catalog(dict(NEW))
    apply(catalog, raised(catalog, catalog_version=2))
    changes = {CATALOG_VERSION: 1}
    with pytest.raises(InvalidLevel, match="could not read what was written since"):
        finalize(catalog.finalized, catalog.brokers.values(), changes, can_lower=True)


def test_a_level_is_lowered_on_request_if_nothing_is_lost() -> None:
    catalog = a_catalog(dict(NEW))
    apply(catalog, raised(catalog, catalog_version=2))
    with pytest.raises(InvalidLevel, match="ask for a downgrade"):
        raised(catalog, transaction_version=1)
    changes = {TRANSACTION_VERSION: 1}
    apply(catalog, finalize(catalog.finalized, catalog.brokers.values(), changes, can_lower=True))
    assert (catalog.finalized.levels[TRANSACTION_VERSION], catalog.finalized.epoch) == (1, 2)


def test_levels_are_not_written_below_the_one_that_introduced_them() -> None:
    catalog = a_catalog(dict(NEW))
    changes = {TRANSACTION_VERSION: 1}
    with pytest.raises(InvalidLevel, match=r"finalise catalog.version 2 before"):
        finalize(catalog.finalized, catalog.brokers.values(), changes, can_lower=True)


def test_unknown_features_are_refused() -> None:
    with pytest.raises(InvalidLevel, match="there is no feature kraft"):
        raised(a_catalog(dict(NEW)), kraft=1)


def test_levels_survive_a_snapshot() -> None:
    catalog = a_catalog(dict(NEW))
    apply(catalog, raised(catalog, catalog_version=2))
    again = Catalog()
    apply(again, list(catalog.records()))
    assert again.finalized == catalog.finalized
    assert again.brokers == catalog.brokers


@pytest.mark.parametrize("name", [name for name, row in TOPIC_SETTINGS.items() if row.level > 1])
def test_a_setting_that_older_brokers_refuse_needs_its_level(name: str) -> None:
    value = value_text(DEFAULTS, name)
    catalog = a_catalog(supported(2), NEW)
    apply(catalog, raised(catalog, catalog_version=2))
    apply(catalog, catalog.create_topic("orders", 1, bytes(16), {"retention.ms": "1000"}))
    with pytest.raises(InvalidSetting, match="run `kafkaesque cluster upgrade --yes`"):
        catalog.create_topic("more", 1, bytes(range(16)), {name: value})
    with pytest.raises(InvalidSetting, match="run `kafkaesque cluster upgrade --yes`"):
        catalog.set_settings("orders", {name: value})
    with pytest.raises(InvalidLevel, match="broker 1 supports"):
        raised(catalog, catalog_version=3)
    apply(catalog, catalog.register(a_broker(1, NEW)))
    apply(catalog, raised(catalog, catalog_version=3))
    apply(catalog, catalog.set_settings("orders", {name: value}))
    assert catalog.topics["orders"].settings == {name: value}


def test_a_topic_keeps_a_setting_that_a_prerelease_gave_it_early() -> None:
    name = "min.cleanable.dirty.ratio"
    ahead = Catalog()
    apply(ahead, first_features(NEW))
    records = ahead.create_topic("orders", 1, bytes(16), {name: "0.1"})
    catalog = a_catalog(NEW)
    apply(catalog, records)
    apply(catalog, catalog.set_settings("orders", {name: "0.2", "retention.ms": "1000"}))
    assert catalog.topics["orders"].settings[name] == "0.2"
