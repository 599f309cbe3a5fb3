"""Settings of single groups are described and changed over a socket, and survive a restart."""

from pathlib import Path

import pytest

from kafkaesque.wire.error_codes import ErrorCode
from tests.server.admins import APPEND, DELETE, GROUP, SET, SUBTRACT, Admin, serve

RESET, LOCK = "share.auto.offset.reset", "share.record.lock.duration.ms"
RENEW, ISOLATION = "share.renew.acknowledge.enable", "share.isolation.level"
OF_GROUP, DEFAULT = 8, 5
BOOLEAN, STRING, INT = 1, 2, 3

Changes = tuple[tuple[str, int, str | None], ...]


async def alter(
    admin: Admin, *changes: tuple[str, int, str | None], group: str = "g", is_dry_run: bool = False
) -> tuple[int, str | None]:
    return await admin.alter(*changes, topic=group, resource_type=GROUP, is_dry_run=is_dry_run)


async def values(admin: Admin, group: str = "g") -> dict[str, str | None]:
    """The settings that are the group's own."""
    found = await admin.describe(GROUP, group)
    assert found.error_code == ErrorCode.NONE
    return {one.name: one.value for one in found.configs if one.config_source == OF_GROUP}


def test_a_group_shows_its_settings_and_where_they_come_from(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        assert await alter(admin, (LOCK, SET, "5000"), (RENEW, SET, "false")) == (0, None)
        found = await admin.describe(GROUP, "g")
        told = {one.name: one for one in found.configs}
        assert list(told) == sorted(told)
        assert (told[LOCK].value, told[LOCK].config_type) == ("5000", INT)
        synonyms = [(one.name, one.value, one.source) for one in told[LOCK].synonyms]
        assert synonyms == [(LOCK, "5000", OF_GROUP), (LOCK, "30000", DEFAULT)]
        assert (told[RENEW].value, told[RENEW].config_type) == ("false", BOOLEAN)
        assert (told[RESET].value, told[RESET].config_source) == ("latest", DEFAULT)
        assert told[RESET].config_type == STRING
        assert told[RESET].documentation
        of_brokers = {name for name, one in told.items() if one.read_only}
        assert of_brokers == {
            "consumer.heartbeat.interval.ms",
            "consumer.session.timeout.ms",
            "share.heartbeat.interval.ms",
            "share.session.timeout.ms",
        }
        (one,) = (await admin.describe(GROUP, "g", (RESET,))).configs
        assert one.name == RESET

    serve(tmp_path / "data", go)


def test_single_settings_are_set_and_reset_and_others_stay(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        assert await alter(admin, (RESET, SET, "earliest"), (LOCK, SET, "5000")) == (0, None)
        assert await alter(admin, (RESET, SET, "latest"), group="other") == (0, None)
        assert await alter(admin, (LOCK, DELETE, None), (RENEW, SET, "false")) == (0, None)
        assert await values(admin) == {RESET: "earliest", RENEW: "false"}
        assert await values(admin, "other") == {RESET: "latest"}
        assert await alter(admin, (RESET, DELETE, None), (RENEW, DELETE, None)) == (0, None)
        assert await values(admin) == {}

    serve(tmp_path / "data", go)


def test_replacing_forgets_what_is_not_named(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        assert await alter(admin, (RESET, SET, "earliest")) == (0, None)
        dry = {"topic": "g", "resource_type": GROUP, "is_dry_run": True}
        assert await admin.replace((LOCK, "5000"), **dry) == ErrorCode.NONE  # type: ignore[arg-type]
        assert await values(admin) == {RESET: "earliest"}
        assert await admin.replace((LOCK, "5000"), topic="g", resource_type=GROUP) == 0
        assert await values(admin) == {LOCK: "5000"}
        code = await admin.replace((LOCK, "soon"), topic="g", resource_type=GROUP)
        assert code == ErrorCode.INVALID_CONFIG
        assert await admin.replace(topic="g", resource_type=GROUP) == 0
        assert await values(admin) == {}

    serve(tmp_path / "data", go)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (((RESET, SET, "yesterday"),), ErrorCode.INVALID_CONFIG),
        (((RESET, SET, None),), ErrorCode.INVALID_REQUEST),
        (((LOCK, SET, "999"),), ErrorCode.INVALID_CONFIG),
        (((LOCK, SET, "5000"), ("share.no.such", SET, "1")), ErrorCode.INVALID_CONFIG),
        ((("share.no.such", DELETE, None),), ErrorCode.INVALID_CONFIG),
        ((("share.session.timeout.ms", SET, "1000"),), ErrorCode.INVALID_CONFIG),
        (((ISOLATION, SET, "dirty"),), ErrorCode.INVALID_CONFIG),
        (((RESET, APPEND, "latest"),), ErrorCode.INVALID_CONFIG),
        (((RESET, SUBTRACT, "latest"),), ErrorCode.INVALID_CONFIG),
        (((RESET, 9, "latest"),), ErrorCode.INVALID_REQUEST),
        (((RESET, SET, "latest"), (RESET, SET, "earliest")), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_change_that_makes_no_sense_changes_nothing(
    tmp_path: Path, changes: Changes, code: ErrorCode
) -> None:
    async def go(admin: Admin) -> None:
        assert await alter(admin, (RESET, SET, "earliest")) == (0, None)
        found, message = await alter(admin, *changes)
        assert found == code
        assert message
        assert await values(admin) == {RESET: "earliest"}

    serve(tmp_path / "data", go)


@pytest.mark.parametrize("name", ["", "g" * 1001])
def test_a_group_needs_a_name_that_can_be_kept(tmp_path: Path, name: str) -> None:
    async def go(admin: Admin) -> None:
        found, _ = await alter(admin, (RESET, SET, "earliest"), group=name)
        assert found == ErrorCode.INVALID_CONFIG

    serve(tmp_path / "data", go)


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        assert await alter(admin, (RESET, SET, "earliest"), is_dry_run=True) == (0, None)
        found, _ = await alter(admin, (RESET, SET, "soon"), is_dry_run=True)
        assert found == ErrorCode.INVALID_CONFIG
        assert await values(admin) == {}

    serve(tmp_path / "data", go)


def test_settings_of_groups_survive_a_restart(tmp_path: Path) -> None:
    async def put(admin: Admin) -> None:
        assert await alter(admin, (RESET, SET, "by_duration:PT1H")) == (0, None)

    async def look(admin: Admin) -> None:
        assert await values(admin) == {RESET: "by_duration:PT1H"}

    serve(tmp_path / "data", put)
    serve(tmp_path / "data", look)
