"""Settings of topics are described and changed over a socket."""

from pathlib import Path

import pytest

from kafkaesque.dynamic_settings import ROWS
from kafkaesque.topic_settings import TOPIC_SETTINGS
from kafkaesque.wire.error_codes import ErrorCode
from tests.server.admins import APPEND, BROKER, DELETE, SET, SUBTRACT, TOPIC, Admin, serve


def test_every_setting_of_a_topic_is_described_with_its_source(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders", settings=[("cleanup.policy", "compact")])
        found = {c.name: c for c in (await admin.describe(TOPIC, "orders")).configs}
        assert found.keys() == TOPIC_SETTINGS.keys()
        policy = found["cleanup.policy"]
        assert (policy.value, policy.config_source, policy.config_type) == ("compact", 1, 7)
        told = [(s.name, s.value, s.source) for s in policy.synonyms]
        assert told == [("cleanup.policy", "compact", 1), ("log.cleanup.policy", "delete", 5)]
        retention = found["retention.ms"]
        assert (retention.value, retention.config_source) == ("604800000", 5)
        assert (retention.config_type, found["segment.bytes"].config_type) == (5, 3)
        assert retention.documentation is not None
        assert "-1 keeps all" in retention.documentation
        assert not retention.read_only
        assert (await admin.values("segment.ms")).keys() == {"segment.ms"}
        missing = await admin.describe(TOPIC, "none")
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        odd = await admin.describe(99, "group")
        assert odd.error_code == ErrorCode.INVALID_REQUEST

    serve(tmp_path / "data", go)


def test_a_broker_describes_its_settings_under_kafkas_names(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        found = await admin.describe(BROKER, "1")
        values = {c.name: c.value for c in found.configs}
        assert values["num.partitions"] == "4"
        assert values["auto.create.topics.enable"] == "true"
        assert values["log.retention.ms"] == "604800000"
        changeable = {c.name for c in found.configs if not c.read_only}
        shown = {name for name, row in ROWS.items() if row.key or row.topic}
        assert changeable == {"draining", *shown}
        assert (await admin.describe(BROKER, "")).configs == ()
        assert (await admin.describe(BROKER, "7")).error_code == ErrorCode.INVALID_REQUEST

    serve(tmp_path / "data", go)


@pytest.mark.parametrize("digits", [5_000, 32_767])
def test_a_number_with_far_too_many_digits_is_not_a_broker(tmp_path: Path, digits: int) -> None:
    async def go(admin: Admin) -> None:
        name = "1" * digits
        assert (await admin.describe(BROKER, name)).error_code == ErrorCode.INVALID_REQUEST
        change = ("draining", SET, "true")
        code, message = await admin.alter(change, topic=name, resource_type=BROKER)
        assert code == ErrorCode.INVALID_REQUEST
        assert message is not None
        assert message.startswith("there is no broker")

    serve(tmp_path / "data", go)


def test_single_settings_are_changed_and_take_effect_at_once(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders", settings=[("retention.ms", "1000")])
        assert await admin.produce("orders") == 0
        assert await admin.alter(("max.message.bytes", SET, "100")) == (0, None)
        assert await admin.produce("orders") == ErrorCode.MESSAGE_TOO_LARGE
        expected = {"max.message.bytes": ("100", 1), "retention.ms": ("1000", 1)}
        assert await admin.values("max.message.bytes", "retention.ms") == expected
        await admin.alter(("max.message.bytes", DELETE, None))
        assert await admin.produce("orders") == 0

    serve(tmp_path / "data", go)


def test_policies_can_be_appended_and_subtracted(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        policy = "cleanup.policy"
        assert await admin.alter((policy, APPEND, "compact")) == (0, None)
        assert await admin.values(policy) == {policy: ("compact,delete", 1)}
        assert await admin.alter((policy, APPEND, "compact")) == (0, None)
        assert await admin.alter((policy, SUBTRACT, "delete")) == (0, None)
        assert await admin.values(policy) == {policy: ("compact", 1)}
        assert (await admin.alter((policy, SUBTRACT, "compact")))[0] == ErrorCode.INVALID_CONFIG

    serve(tmp_path / "data", go)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("no.such", DELETE, None)], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("segment.ms", SET, "5"), ("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_an_invalid_change_changes_nothing(
    tmp_path: Path, changes: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        before = await admin.values()
        found, message = await admin.alter(*changes)
        assert found == code
        assert message
        assert await admin.values() == before

    serve(tmp_path / "data", go)


def test_a_missing_topic_cannot_be_changed(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        missing = (await admin.alter(("retention.ms", SET, "1"), topic="none"))[0]
        assert missing == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    serve(tmp_path / "data", go)


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        assert await admin.alter(("retention.ms", SET, "1"), is_dry_run=True) == (0, None)
        assert await admin.values("retention.ms") == {"retention.ms": ("604800000", 5)}
        assert (await admin.alter(("retention.ms", SET, "x"), is_dry_run=True))[0]

    serve(tmp_path / "data", go)


def test_replacing_settings_resets_those_not_named(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders", settings=[("retention.ms", "1000")])
        assert await admin.replace(("segment.ms", "5000")) == 0
        expected = {"retention.ms": ("604800000", 5), "segment.ms": ("5000", 1)}
        assert await admin.values("retention.ms", "segment.ms") == expected
        assert await admin.replace(("segment.ms", None)) == ErrorCode.INVALID_CONFIG

    serve(tmp_path / "data", go)
