"""Settings of brokers and loggers are described and changed over a socket at run time."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.cluster_config import ClusterConfig
from kafkaesque.config import BrokerConfig
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.dynamic_settings import ROWS
from kafkaesque.node import Node, NodeSettings
from kafkaesque.wire.error_codes import ErrorCode
from tests.server.admins import APPEND, BROKER, DELETE, SET, SUBTRACT, TOPIC, Admin, serve
from tests.server.test_connection import Client

LOGGER = 8
ALL, ONE = "", "1"
DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5
RETENTION, SIZE = "log.retention.ms", "group.max.size"
WEEK = str(7 * 24 * 3600 * 1000)


async def put(admin: Admin, name: str, value: str, broker: str = ALL) -> None:
    answer = await admin.alter((name, SET, value), topic=broker, resource_type=BROKER)
    assert answer == (0, None)


async def drop(admin: Admin, name: str, broker: str = ALL) -> None:
    answer = await admin.alter((name, DELETE, None), topic=broker, resource_type=BROKER)
    assert answer == (0, None)


async def told(
    admin: Admin, name: str, resource: str = ONE, resource_type: int = BROKER
) -> list[tuple[str, str | None, int]]:
    """Return a setting's synonyms, checking that the first of them gives its value and source."""
    (found,) = (await admin.describe(resource_type, resource, (name,))).configs
    assert (found.value, found.config_source) == (found.synonyms[0].value, found.synonyms[0].source)
    return [(one.name, one.value, one.source) for one in found.synonyms]


def test_a_brokers_own_setting_wins_and_falls_back_step_by_step(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        default = (RETENTION, WEEK, DEFAULT)
        of_all, own = (RETENTION, "5000", DYNAMIC_DEFAULT), (RETENTION, "7000", DYNAMIC)
        await put(admin, RETENTION, "5000")
        await put(admin, RETENTION, "7000", ONE)
        assert await told(admin, RETENTION) == [own, of_all, default]
        assert await told(admin, "retention.ms", "orders", TOPIC) == [own, of_all, default]
        await admin.alter(("retention.ms", SET, "9000"))
        found = await told(admin, "retention.ms", "orders", TOPIC)
        assert found == [("retention.ms", "9000", 1), own, of_all, default]
        await admin.alter(("retention.ms", DELETE, None))
        await drop(admin, RETENTION, ONE)
        assert await told(admin, RETENTION) == [of_all, default]
        assert await told(admin, "retention.ms", "orders", TOPIC) == [of_all, default]
        await drop(admin, RETENTION)
        assert await told(admin, RETENTION) == [default]

    serve(tmp_path / "data", go)


def test_a_value_of_the_configuration_file_comes_in_between(tmp_path: Path) -> None:
    config = BrokerConfig(groups=GroupConfig(members_max=30))

    async def go() -> None:
        async with Served(tmp_path / "data", config) as admin:
            static, default = (SIZE, "30", STATIC), (SIZE, "1000", DEFAULT)
            assert await told(admin, SIZE) == [static, default]
            await put(admin, SIZE, "20")
            assert await told(admin, SIZE) == [(SIZE, "20", DYNAMIC_DEFAULT), static, default]

    asyncio.run(go())


def test_a_setting_survives_a_restart(tmp_path: Path) -> None:
    async def go() -> None:
        async with Served(tmp_path / "data") as admin:
            await admin.create("orders")
            await put(admin, "message.max.bytes", "100")
            await put(admin, "num.partitions", "7", ONE)
            assert await admin.produce("orders") == ErrorCode.MESSAGE_TOO_LARGE
        async with Served(tmp_path / "data") as admin:
            assert await admin.produce("orders") == ErrorCode.MESSAGE_TOO_LARGE
            assert (await admin.create("more", -1)).num_partitions == 7
            await drop(admin, "message.max.bytes")
            assert await admin.produce("orders") == 0

    asyncio.run(go())


def test_cluster_wide_settings_are_described_separately(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        assert (await admin.describe(BROKER, ALL)).configs == ()
        await put(admin, SIZE, "20")
        await put(admin, RETENTION, "5000", ONE)
        found = (await admin.describe(BROKER, ALL)).configs
        assert [(c.name, c.value, c.config_source) for c in found] == [(SIZE, "20", 3)]

    serve(tmp_path / "data", go)


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (
            ("log.dirs", SET, "/tmp"),
            ErrorCode.INVALID_REQUEST,
            "log.dirs cannot be changed at run time",
        ),
        (
            ("node.id", DELETE, None),
            ErrorCode.INVALID_REQUEST,
            "node.id cannot be changed at run time",
        ),
        (
            ("raft.election_ticks", SET, "5"),
            ErrorCode.INVALID_REQUEST,
            "raft.election_ticks cannot",
        ),
        (("socket.request.max.bytes", SET, "5"), ErrorCode.INVALID_REQUEST, "cannot be changed"),
        (("no.such", SET, "5"), ErrorCode.INVALID_CONFIG, "setting 'no.such'"),
        (("no.such", DELETE, None), ErrorCode.INVALID_CONFIG, "setting 'no.such'"),
        ((SIZE, SET, "few"), ErrorCode.INVALID_CONFIG, "group.max.size must be a whole number"),
        ((SIZE, SET, "0"), ErrorCode.INVALID_CONFIG, "group.max.size must be from 1 to"),
        ((SIZE, SET, "1" * 30_000), ErrorCode.INVALID_CONFIG, "takes at most 100 characters"),
        (("x" * 30_000, SET, "1"), ErrorCode.INVALID_CONFIG, "setting 'xxx"),
        ((SIZE, SET, None), ErrorCode.INVALID_REQUEST, "group.max.size needs a value"),
        ((SIZE, APPEND, "5"), ErrorCode.INVALID_CONFIG, "group.max.size is not a list"),
        ((SIZE, 9, "5"), ErrorCode.INVALID_REQUEST, "unknown operation 9"),
        (
            ("group.min.session.timeout.ms", SET, "1800001"),
            ErrorCode.INVALID_CONFIG,
            "group.min.session.timeout.ms is 1800001 and must be at most",
        ),
    ],
)
@pytest.mark.parametrize("is_dry_run", [True, False])
@pytest.mark.parametrize("broker", [ALL, ONE])
def test_an_invalid_change_is_refused_with_one_sentence_and_changes_nothing(
    tmp_path: Path,
    change: tuple[str, int, str | None],
    code: ErrorCode,
    said: str,
    broker: str,
    is_dry_run: bool,
) -> None:
    async def go(admin: Admin) -> None:
        found, message = await admin.alter(
            (RETENTION, SET, "5000"),
            change,
            topic=broker,
            resource_type=BROKER,
            is_dry_run=is_dry_run,
        )
        assert (found, said in (message or "")) == (code, True), message
        assert len(message or "") < 300
        assert await told(admin, RETENTION) == [(RETENTION, WEEK, DEFAULT)]

    serve(tmp_path / "data", go)


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        change = (RETENTION, SET, "5000")
        for name in (ALL, ONE):
            answer = await admin.alter(change, topic=name, resource_type=BROKER, is_dry_run=True)
            assert answer == (0, None)
            code = await admin.replace(
                (RETENTION, "5000"), topic=name, resource_type=BROKER, is_dry_run=True
            )
            assert code == 0
        assert await told(admin, RETENTION) == [(RETENTION, WEEK, DEFAULT)]

    serve(tmp_path / "data", go)


def test_replacing_a_brokers_settings_resets_those_not_named(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await put(admin, SIZE, "20", ONE)
        await put(admin, "num.partitions", "2")
        assert await admin.replace((RETENTION, "5000"), topic=ONE, resource_type=BROKER) == 0
        assert (await told(admin, RETENTION))[0] == (RETENTION, "5000", DYNAMIC)
        assert await told(admin, SIZE) == [(SIZE, "1000", DEFAULT)]
        assert (await told(admin, "num.partitions"))[0][1:] == ("2", DYNAMIC_DEFAULT)
        for name in ("log.dirs", "draining"):
            code = await admin.replace((name, "true"), topic=ONE, resource_type=BROKER)
            assert code == ErrorCode.INVALID_REQUEST

    serve(tmp_path / "data", go)


def test_policies_can_be_appended_to_the_default_and_subtracted(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        for operation, item, now in (
            (APPEND, "compact", "compact,delete"),
            (SUBTRACT, "delete", "compact"),
        ):
            answer = await admin.alter(
                ("log.cleanup.policy", operation, item), topic=ALL, resource_type=BROKER
            )
            assert answer == (0, None)
            assert (await told(admin, "cleanup.policy", "orders", TOPIC))[0][1] == now

    serve(tmp_path / "data", go)


def test_draining_and_other_settings_change_atomically(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        code, _ = await admin.alter(
            ("draining", SET, "true"), (SIZE, SET, "few"), topic=ONE, resource_type=BROKER
        )
        assert code == ErrorCode.INVALID_CONFIG
        assert await told(admin, "draining") == [("draining", "false", DEFAULT)]
        changes = [("draining", SET, "true"), (SIZE, SET, "5")]
        assert await admin.alter(*changes, topic=ONE, resource_type=BROKER) == (0, None)
        assert await told(admin, "draining") == [("draining", "true", DYNAMIC)]
        assert (await told(admin, SIZE))[0] == (SIZE, "5", DYNAMIC)

    serve(tmp_path / "data", go)


def test_a_cluster_of_an_older_level_accepts_throttles_without_storing_them(tmp_path: Path) -> None:
    config = BrokerConfig(cluster=ClusterConfig(catalog_version_max=3))
    rate = "leader.replication.throttled.rate"

    async def go() -> None:
        async with Served(tmp_path / "data", config) as admin:
            await put(admin, rate, "1000", ONE)
            assert len(await told(admin, rate)) == 1
            code, message = await admin.alter((SIZE, SET, "5"), topic=ALL, resource_type=BROKER)
            assert code == ErrorCode.INVALID_CONFIG
            assert message is not None
            assert "kafkaesque cluster upgrade" in message

    asyncio.run(go())


def test_every_setting_can_be_set_described_and_deleted(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        before = {c.name: c.value for c in (await admin.describe(BROKER, ONE)).configs}
        values = {name: before.get(name) or "1000" for name in ROWS}
        changes = [(name, SET, value) for name, value in values.items()]
        assert await admin.alter(*changes, topic=ALL, resource_type=BROKER) == (0, None)
        found = {c.name: c for c in (await admin.describe(BROKER, ONE)).configs}
        assert {name: found[name].value for name in ROWS} == values
        assert {found[name].config_source for name in ROWS} == {DYNAMIC_DEFAULT}
        drops = [(name, DELETE, None) for name in ROWS]
        assert await admin.alter(*drops, topic=ALL, resource_type=BROKER) == (0, None)
        after = (await admin.describe(BROKER, ONE)).configs
        assert {c.name: c.value for c in after} == before
        assert not [c.name for c in after if c.config_source == DYNAMIC_DEFAULT]

    serve(tmp_path / "data", go)


@pytest.fixture
def levels() -> Iterator[None]:
    """Restore the levels of all loggers."""
    names = ["root", "kafkaesque", "kafkaesque.events.clients", "kafkaesque.server.edge.connection"]
    before = {name: logging.getLogger(name).level for name in names if name != "root"}
    root = logging.root.level
    yield
    logging.root.setLevel(root)
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("levels")
def test_logger_levels_change_at_once_and_fall_back(tmp_path: Path) -> None:
    name = "kafkaesque.events.clients"
    found = logging.getLogger(name)

    async def level(admin: Admin, logger: str = name) -> str | None:
        return (await admin.describe(LOGGER, ONE, (logger,))).configs[0].value

    async def go(admin: Admin) -> None:
        answer = await admin.alter(("root", SET, "INFO"), topic=ONE, resource_type=LOGGER)
        assert answer == (0, None)
        assert await level(admin) == "INFO"
        for text, number in (("ERROR", 40), ("WARN", 30), ("FATAL", 50), ("TRACE", 5)):
            answer = await admin.alter((name, SET, text), topic=ONE, resource_type=LOGGER)
            assert answer == (0, None)
            assert await level(admin) == text
            assert found.level == number
        assert found.isEnabledFor(logging.DEBUG)
        assert await level(admin, "kafkaesque.server.edge.connection") == "INFO"
        await admin.alter((name, SET, "ERROR"), topic=ONE, resource_type=LOGGER, is_dry_run=True)
        assert await level(admin) == "TRACE"
        assert await admin.alter((name, DELETE, None), topic=ONE, resource_type=LOGGER) == (0, None)
        assert await level(admin) == "INFO"

    serve(tmp_path / "data", go)


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("kafkaesque.nowhere", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (("asyncio", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        (("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        (("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_invalid_level_changes_nothing(
    tmp_path: Path, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    name = "kafkaesque.events.clients"

    async def go(admin: Admin) -> None:
        before = logging.getLogger(name).level
        found, message = await admin.alter(
            (name, SET, "ERROR"), change, topic=ONE, resource_type=LOGGER
        )
        assert (found, bool(message)) == (code, True)
        assert logging.getLogger(name).level == before
        found, _ = await admin.alter((name, SET, "ERROR"), topic="7", resource_type=LOGGER)
        assert found == ErrorCode.INVALID_REQUEST
        whole = await admin.replace((name, "ERROR"), topic=ONE, resource_type=LOGGER)
        assert whole == ErrorCode.INVALID_REQUEST

    serve(tmp_path / "data", go)


class Served:
    """A node with settings given by the test, and a connection to it."""

    def __init__(self, data: Path, config: BrokerConfig | None = None) -> None:
        self._node = Node(NodeSettings(port=0, data=data), config)

    async def __aenter__(self) -> Admin:
        await self._node.start()
        self._client = Client(*await asyncio.open_connection("127.0.0.1", self._node.port))
        return Admin(self._client)

    async def __aexit__(self, *_: object) -> None:
        self._client.writer.transport.abort()
        await self._node.stop()
