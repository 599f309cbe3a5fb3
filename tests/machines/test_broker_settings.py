"""Broker settings in the catalog: which one wins, which are refused, which last."""

import pytest

from kafkaesque.errors import InvalidSetting
from kafkaesque.machines.catalog.broker_settings import (
    ALL_BROKERS,
    set_broker_settings,
    settings_in_force,
)
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_errors import SettingsChanged, UnknownBroker
from kafkaesque.machines.catalog.catalog_moves import remove_broker
from kafkaesque.machines.catalog.features import first_features, supported
from kafkaesque.machines.machine import MachineRecord
from tests.machines.test_features import a_broker

SIZE, DELAY = "group.max.size", "group.initial.rebalance.delay.ms"


def apply(catalog: Catalog, records: list[MachineRecord]) -> None:
    for record in records:
        catalog.apply(record)


def a_catalog(level: int = 4) -> Catalog:
    """Two brokers, at a level of the catalog."""
    catalog = Catalog()
    apply(catalog, first_features(supported(level)))
    for node in (1, 2):
        apply(catalog, catalog.register(a_broker(node, dict(supported(level)))))
    return catalog


def test_a_brokers_own_setting_overrides_the_cluster_wide_one() -> None:
    catalog = a_catalog()
    apply(catalog, set_broker_settings(catalog, ALL_BROKERS, {SIZE: "5", DELAY: "7"}))
    apply(catalog, set_broker_settings(catalog, 1, {SIZE: "9"}))
    assert settings_in_force(catalog, 1) == {SIZE: "9", DELAY: "7"}
    assert settings_in_force(catalog, 2) == {SIZE: "5", DELAY: "7"}
    apply(catalog, set_broker_settings(catalog, 1, {}))
    assert settings_in_force(catalog, 1) == {SIZE: "5", DELAY: "7"}
    apply(catalog, set_broker_settings(catalog, ALL_BROKERS, {}))
    assert settings_in_force(catalog, 1) == {}
    assert catalog.broker_settings == {}


def test_setting_the_current_value_writes_nothing() -> None:
    catalog = a_catalog()
    apply(catalog, set_broker_settings(catalog, 1, {SIZE: "5"}))
    assert set_broker_settings(catalog, 1, {SIZE: "5"}) == []


def test_a_catalog_rebuilt_from_its_records_knows_all_settings() -> None:
    catalog = a_catalog()
    apply(catalog, set_broker_settings(catalog, ALL_BROKERS, {DELAY: "7"}))
    apply(catalog, set_broker_settings(catalog, 2, {SIZE: "9"}))
    again = Catalog()
    apply(again, list(catalog.records()))
    assert again.broker_settings == {ALL_BROKERS: {DELAY: "7"}, 2: {SIZE: "9"}}


def test_a_change_based_on_outdated_settings_is_refused() -> None:
    catalog = a_catalog()
    apply(catalog, set_broker_settings(catalog, 1, {SIZE: "5"}))
    with pytest.raises(SettingsChanged):
        set_broker_settings(catalog, 1, {DELAY: "7"}, expected={})
    assert set_broker_settings(catalog, 1, {DELAY: "7"}, expected={SIZE: "5"})


def test_an_unknown_broker_and_an_unknown_setting_are_refused() -> None:
    catalog = a_catalog()
    with pytest.raises(UnknownBroker, match="there is no broker 3"):
        set_broker_settings(catalog, 3, {SIZE: "5"})
    with pytest.raises(InvalidSetting, match=r"setting 'no\.such'"):
        set_broker_settings(catalog, 1, {"no.such": "5"})
    with pytest.raises(InvalidSetting, match=r"group\.max\.size must be a whole number"):
        set_broker_settings(catalog, 1, {SIZE: "few"})


def test_settings_that_an_older_broker_could_not_read_are_not_written() -> None:
    with pytest.raises(InvalidSetting, match=r"catalog.version is 3 and must be 4"):
        set_broker_settings(a_catalog(level=3), ALL_BROKERS, {SIZE: "5"})


def test_the_settings_of_a_removed_broker_are_removed_with_it() -> None:
    catalog = a_catalog()
    apply(catalog, set_broker_settings(catalog, 2, {SIZE: "5"}))
    apply(catalog, remove_broker(catalog, 2, voters=(1,)))
    assert catalog.broker_settings == {}
