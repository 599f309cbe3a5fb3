"""Settings of single groups: what is taken as a value, and how the catalog keeps them."""

import pytest

from kafkaesque.errors import InvalidSetting
from kafkaesque.group_settings import (
    DEFAULTS,
    GROUP_SETTINGS,
    group_value_text,
    reset_ms,
    resolve_group,
)
from kafkaesque.machines.catalog import group_settings
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_errors import InvalidLevel, SettingsChanged
from kafkaesque.machines.catalog.features import (
    CATALOG_VERSION,
    SHARE_VERSION,
    finalize,
    first_features,
    supported,
)
from kafkaesque.machines.catalog.group_settings import (
    GROUP_NAME_BYTES_MAX,
    set_group_settings,
)
from kafkaesque.machines.machine import MachineRecord
from tests.machines.test_features import a_broker

RESET, LOCK = "share.auto.offset.reset", "share.record.lock.duration.ms"
DAY_MS = 86_400_000
NUMBERS = [name for name, row in GROUP_SETTINGS.items() if row.kind is int]


def apply(catalog: Catalog, records: list[MachineRecord]) -> None:
    for record in records:
        catalog.apply(record)


def a_catalog(level: int = 5) -> Catalog:
    catalog = Catalog()
    apply(catalog, first_features(supported(level)))
    apply(catalog, catalog.register(a_broker(1, dict(supported(level)))))
    return catalog


# ── values ───────────────────────────────────────────────────────────────────────────────────


def test_without_overrides_the_defaults_hold() -> None:
    assert resolve_group({}) == DEFAULTS
    assert DEFAULTS.share_auto_offset_reset == "latest"


@pytest.mark.parametrize("name", GROUP_SETTINGS)
def test_every_default_can_be_set(name: str) -> None:
    text = group_value_text(DEFAULTS, name)
    assert resolve_group({name: text}) == DEFAULTS
    assert GROUP_SETTINGS[name].does.endswith(".")


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_bounds(name: str) -> None:
    row = GROUP_SETTINGS[name]
    for good in (row.least, row.most):
        assert group_value_text(resolve_group({name: str(good)}), name) == str(good)
    for bad in (row.least - 1, row.most + 1):
        with pytest.raises(InvalidSetting, match=f"from {row.least} to {row.most}"):
            resolve_group({name: str(bad)})
    for bad_text in (
        "",
        "-1",
        "1.0",
        " 5",
        "5 ",
        "1e3",
        "9" * 19,
        "five",
        "\u0665\u0660\u0660\u0660",
    ):
        with pytest.raises(InvalidSetting):
            resolve_group({name: bad_text})


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("share.isolation.level", "read_committed", "READ_COMMITTED"),
        ("share.renew.acknowledge.enable", "false", "no"),
        (RESET, "earliest", "none"),
    ],
)
def test_words_are_taken_as_they_are(name: str, good: str, bad: str) -> None:
    assert group_value_text(resolve_group({name: good}), name) == good
    with pytest.raises(InvalidSetting, match=r"must be .*, not"):
        resolve_group({name: bad})


@pytest.mark.parametrize("name", ["", "share.no.such", "share_auto_offset_reset", "x" * 10_000])
def test_an_unknown_setting_is_refused_in_a_short_sentence(name: str) -> None:
    with pytest.raises(InvalidSetting, match="unknown group setting") as refused:
        resolve_group({name: "1"})
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT1H", 3_600_000),
        ("P1D", DAY_MS),
        ("P2DT3H4M5.5S", 2 * DAY_MS + 3 * 3_600_000 + 4 * 60_000 + 5_500),
        ("PT90M", 90 * 60_000),
        ("PT0.001S", 1),
        ("P999999999D", 999_999_999 * DAY_MS),
    ],
)
def test_durations(text: str, ms: int) -> None:
    value = f"by_duration:{text}"
    assert reset_ms(value) == ms
    assert resolve_group({RESET: value}).share_auto_offset_reset == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "PT0S",
        "P0D",
        "-PT1H",
        "PT-1H",
        "1H",
        "PT1H1H",
        "pt1h",
        "P1W",
        "PT1.5H",
        "PT1H\n",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="by_duration:PT1H"):
        resolve_group({RESET: f"by_duration:{text}"})


def test_words_are_no_durations() -> None:
    assert reset_ms("earliest") is None
    assert reset_ms("latest") is None


# ── the catalog ──────────────────────────────────────────────────────────────────────────────


def test_settings_are_kept_replaced_and_removed() -> None:
    catalog = a_catalog()
    apply(catalog, set_group_settings(catalog, "g", {LOCK: "5000"}))
    apply(catalog, set_group_settings(catalog, "h", {RESET: "earliest"}))
    apply(catalog, set_group_settings(catalog, "g", {RESET: "earliest"}))
    assert catalog.group_settings == {"g": {RESET: "earliest"}, "h": {RESET: "earliest"}}
    assert set_group_settings(catalog, "g", {RESET: "earliest"}) == []
    again = Catalog()
    apply(again, list(catalog.records()))
    assert again.group_settings == catalog.group_settings
    apply(catalog, set_group_settings(catalog, "g", {}))
    assert catalog.group_settings == {"h": {RESET: "earliest"}}
    assert set_group_settings(catalog, "g", {}) == []


def test_a_record_is_as_documented() -> None:
    (record,) = set_group_settings(a_catalog(), "g", {LOCK: "5000"})
    assert record.key == b"group-settings/g"
    text = b"\xbd" + LOCK.encode()
    assert record.value == b"\x93\x09\xa1g\x81" + text + b"\xa45000"


def test_what_is_wrong_is_refused() -> None:
    catalog = a_catalog()
    for name in ("", "g" * (GROUP_NAME_BYTES_MAX + 1), "€" * GROUP_NAME_BYTES_MAX):
        with pytest.raises(InvalidSetting, match="empty or too long"):
            set_group_settings(catalog, name, {LOCK: "5000"})
    with pytest.raises(InvalidSetting, match="unknown group setting"):
        set_group_settings(catalog, "g", {"no.such": "1"})
    with pytest.raises(InvalidSetting, match="from 1000"):
        set_group_settings(catalog, "g", {LOCK: "5"})


def test_who_has_seen_other_settings_changes_nothing() -> None:
    catalog = a_catalog()
    apply(catalog, set_group_settings(catalog, "g", {LOCK: "5000"}))
    with pytest.raises(SettingsChanged):
        set_group_settings(catalog, "g", {LOCK: "6000"}, expected={})
    assert set_group_settings(catalog, "g", {LOCK: "6000"}, expected={LOCK: "5000"})


def test_few_groups_have_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_settings, "GROUPS_MAX", 1)
    catalog = a_catalog()
    apply(catalog, set_group_settings(catalog, "g", {LOCK: "5000"}))
    with pytest.raises(InvalidSetting, match="at most 1 groups"):
        set_group_settings(catalog, "h", {LOCK: "5000"})
    assert set_group_settings(catalog, "h", {}) == []
    apply(catalog, set_group_settings(catalog, "g", {LOCK: "6000"}))
    apply(catalog, set_group_settings(catalog, "g", {}))
    assert set_group_settings(catalog, "h", {LOCK: "5000"})


# ── levels ───────────────────────────────────────────────────────────────────────────────────


def test_older_brokers_must_not_find_group_settings_in_the_log() -> None:
    with pytest.raises(InvalidSetting, match="run `kafkaesque cluster upgrade --yes`"):
        set_group_settings(a_catalog(4), "g", {LOCK: "5000"})


def test_a_cluster_that_was_upgraded_knows_share_groups_once_that_is_finalised() -> None:
    catalog = a_catalog(4)
    assert SHARE_VERSION not in catalog.finalized.levels
    changes = {CATALOG_VERSION: 5, SHARE_VERSION: 1}

    def raised() -> list[MachineRecord]:
        return finalize(catalog.finalized, catalog.brokers.values(), changes)

    with pytest.raises(InvalidLevel, match="broker 1 supports"):
        raised()
    apply(catalog, catalog.register(a_broker(1, dict(supported()))))
    assert SHARE_VERSION not in catalog.finalized.levels
    with pytest.raises(InvalidLevel, match=f"broker 1 supports {SHARE_VERSION} 1 to 1, not 2"):
        finalize(catalog.finalized, catalog.brokers.values(), {SHARE_VERSION: 2})
    apply(catalog, raised())
    assert catalog.finalized.levels[SHARE_VERSION] == 1
    with pytest.raises(InvalidLevel, match="could not read what was written since"):
        finalize(catalog.finalized, catalog.brokers.values(), {SHARE_VERSION: 0}, can_lower=True)
    again = Catalog()
    apply(again, list(catalog.records()))
    assert again.finalized == catalog.finalized


def test_a_new_cluster_knows_share_groups() -> None:
    assert a_catalog().finalized.levels[SHARE_VERSION] == 1
