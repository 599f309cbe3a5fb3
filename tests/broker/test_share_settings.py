"""The settings of share groups as they act: resolved once per change, with Kafka's defaults."""

from collections.abc import Mapping

import pytest

from kafkaesque.broker.queues import share_settings
from kafkaesque.broker.queues.share_settings import ShareSettingsInForce
from kafkaesque.group_settings import GroupSettings, resolve_group
from kafkaesque.machines.queues.share_values import ShareLimits

LOCK, WINDOW = "share.record.lock.duration.ms", "share.partition.max.record.locks"
Texts = dict[str, Mapping[str, str]]


def test_a_group_without_settings_has_those_of_kafka() -> None:
    found = ShareSettingsInForce(lambda: {}).of("g")
    assert found.limits == ShareLimits()
    assert (found.lock_ms, found.reset) == (30_000, "latest")
    assert not found.only_committed
    assert found.may_renew


def test_settings_act() -> None:
    texts: Texts = {
        "g": {
            LOCK: "5000",
            WINDOW: "300",
            "share.delivery.count.limit": "7",
            "share.isolation.level": "read_committed",
            "share.auto.offset.reset": "earliest",
            "share.renew.acknowledge.enable": "false",
        }
    }
    found = ShareSettingsInForce(lambda: texts).of("g")
    limits = ShareLimits(lock_ms=5_000, delivery_max=7, window=300, locks_max=300)
    assert found.limits == limits
    assert (found.lock_ms, found.reset) == (5_000, "earliest")
    assert found.only_committed
    assert not found.may_renew


def test_they_are_resolved_once_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved: list[Mapping[str, str]] = []

    def resolve(texts: Mapping[str, str]) -> GroupSettings:
        resolved.append(texts)
        return resolve_group(texts)

    monkeypatch.setattr(share_settings, "resolve_group", resolve)
    texts: Texts = {"g": {LOCK: "5000"}}
    settings = ShareSettingsInForce(lambda: texts)
    assert settings.of("g") is settings.of("g")
    assert settings.of("h").lock_ms == 30_000
    texts["g"] = {LOCK: "6000"}
    assert settings.of("g").lock_ms == 6_000
    assert len(resolved) == 2
    del texts["g"]
    assert settings.of("g").lock_ms == 30_000
    assert not settings._resolved, "nothing is kept of groups without settings"


def test_what_only_newer_brokers_know_is_passed_over() -> None:
    """The broker's ticks look at the settings: an error would stop it."""
    settings = ShareSettingsInForce(lambda: {"g": {LOCK: "5000", "share.of.tomorrow": "1"}})
    assert settings.of("g").lock_ms == 5_000
