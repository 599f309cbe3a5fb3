"""Each dynamic setting changes a broker's behaviour without a restart.

Settings about moving partitions need several brokers (`tests/sim/test_broker_live_settings.py`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import fields
from pathlib import Path
from typing import TypeAlias

import pytest

from kafkaesque.config import BrokerConfig, HousekeepingConfig, LogConfig
from kafkaesque.dynamic_settings import ROWS
from kafkaesque.machines.groups.group_errors import UnknownMember
from kafkaesque.machines.groups.share_commands import ShareTold
from kafkaesque.node import Node, NodeSettings
from kafkaesque.record.build import ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.topic_settings import DEFAULTS, TOPIC_SETTINGS, Never, value_text
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kafkaesque.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkaesque.wire.messages.fetch import FetchResponse
from kafkaesque.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkaesque.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.server.admins import BROKER, SET, Admin
from tests.server.running import SECONDS_MAX, ManualClock
from tests.server.test_connection import Client
from tests.server.test_consumer_groups import beat
from tests.server.test_doorkeeper import AGuest
from tests.server.test_fetch_sessions import a_request
from tests.server.test_groups import GROUP, commit, committed, fetched, join
from tests.server.test_share_groups import share

CLUSTER_WIDE = {
    *("cluster.auto_rebalance", "cluster.moves_max", "cluster.replica_replace_ms"),
    *("leader.replication.throttled.rate", "moves.moves_max"),
}
TRANSACTION = 1
OTHERS = "192.0.2.1"


class Stage:
    """One running broker whose clock the test moves."""

    def __init__(self, node: Node, clock: ManualClock) -> None:
        self.node = node
        self.clock = clock
        self._clients: list[Client] = []

    async def client(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.node.port)
        self._clients.append(Client(reader, writer))
        return self._clients[-1]

    async def put(self, name: str, value: str) -> None:
        """Change a setting of all brokers."""
        change = (name, SET, value)
        assert await self.admin.alter(change, topic="", resource_type=BROKER) == (0, None)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(SECONDS_MAX):
            while not is_so():  # noqa: ASYNC110  # the broker gives no notice
                await asyncio.sleep(0.001)

    async def pass_ms(self, ms: int) -> None:
        """Let time pass, and the broker act on it."""
        self.clock.ms += ms
        for _ in range(3):
            self.broker.tick()
            await asyncio.sleep(0)

    async def __aenter__(self) -> "Stage":
        await self.node.start()
        self.broker = self.node.broker
        self.admin = Admin(await self.client())
        await self.admin.create("orders")
        await self.admin.ask(FindCoordinatorRequest(key=GROUP), FindCoordinatorResponse, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            client.writer.transport.abort()
        await self.node.stop()


Show: TypeAlias = Callable[[Stage], Coroutine[None, None, None]]
SHOWN: dict[str, Show] = {}


def shows(name: str) -> Callable[[Show], Show]:
    def note(show: Show) -> Show:
        SHOWN[name] = show
        return show

    return note


def played(data: Path, show: Show, config: BrokerConfig | None = None) -> None:
    async def go() -> None:
        clock = ManualClock()
        settings = NodeSettings(port=0, data=data, log=LogConfig(segment_bytes_max=1024))
        async with Stage(Node(settings, config, clock), clock) as stage:
            await show(stage)

    asyncio.run(go())


# ── topics ───────────────────────────────────────────────────────────────────────────────────


@shows("auto.create.topics.enable")
async def _(stage: Stage) -> None:
    async def asked(name: str) -> int:
        request = MetadataRequest(
            topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=True
        )
        answer = await stage.admin.ask(request, MetadataResponse)
        return answer.topics[0].error_code

    assert await asked("first") in (0, ErrorCode.LEADER_NOT_AVAILABLE)
    await stage.put("auto.create.topics.enable", "false")
    assert await asked("second") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@shows("num.partitions")
async def _(stage: Stage) -> None:
    assert (await stage.admin.create("first", -1)).num_partitions == 4
    await stage.put("num.partitions", "7")
    assert (await stage.admin.create("second", -1)).num_partitions == 7


# ── connections ──────────────────────────────────────────────────────────────────────────────


def entered(stage: Stage, count: int, address: str = OTHERS) -> int:
    """Return how many of this many connections are admitted."""
    keeper = stage.node.edge.doorkeeper
    guests = [AGuest() for _ in range(count)]
    let_in = [guest for guest in guests if keeper.enter(guest, address)]
    for guest in let_in:
        keeper.leave(guest)
    return len(let_in)


@shows("max.connections")
async def _(stage: Stage) -> None:
    assert entered(stage, 5) == 5
    await stage.put("max.connections", "3")
    assert entered(stage, 5) == 2, "one is the test's own"


@shows("max.connections.per.ip")
async def _(stage: Stage) -> None:
    await stage.put("max.connections.per.ip", "3")
    assert entered(stage, 5) == 3
    stage.clock.ms += 1_000
    assert entered(stage, 3, "192.0.2.2") == 3


@shows("max.connection.creation.rate")
async def _(stage: Stage) -> None:
    await stage.put("max.connection.creation.rate", "4")
    stage.clock.ms += 1_000
    assert entered(stage, 3) == 3
    assert entered(stage, 3, "192.0.2.2") == 1


@shows("limits.connection_rate_per_address_max")
async def _(stage: Stage) -> None:
    await stage.put("limits.connection_rate_per_address_max", "2")
    stage.clock.ms += 1_000
    assert entered(stage, 3) == 2
    assert entered(stage, 1, "192.0.2.2") == 1


@shows("connections.max.idle.ms")
async def _(stage: Stage) -> None:
    idle = await stage.client()
    await idle.ask(FindCoordinatorRequest(key=GROUP), 0, FindCoordinatorResponse)
    await stage.put("connections.max.idle.ms", "5000")
    stage.clock.ms += 4_000
    await stage.admin.metadata()
    stage.clock.ms += 2_000
    stage.node.edge.sweep()
    assert await idle.is_closed()
    await stage.admin.metadata()


# ── groups ───────────────────────────────────────────────────────────────────────────────────


async def joined(stage: Stage, request: JoinGroupRequest) -> int:
    return (await stage.admin.ask(request, JoinGroupResponse, 3)).error_code


def has_group(stage: Stage) -> bool:
    """Whether a member waits to be admitted to the group."""
    return stage.broker.coordinators.of(GROUP)._host.machine.group(GROUP) is not None


@shows("group.initial.rebalance.delay.ms")
async def _(stage: Stage) -> None:
    await stage.put("group.initial.rebalance.delay.ms", "5000")
    async with asyncio.TaskGroup() as tasks:
        joining = tasks.create_task(joined(stage, join()))
        await stage.until(lambda: has_group(stage))
        await stage.pass_ms(4_900)
        assert not joining.done()
        await stage.pass_ms(200)
    assert joining.result() == 0


@shows("group.min.session.timeout.ms")
async def _(stage: Stage) -> None:
    await stage.put("group.min.session.timeout.ms", "10001")
    assert await joined(stage, join()) == ErrorCode.INVALID_SESSION_TIMEOUT


@shows("group.max.session.timeout.ms")
async def _(stage: Stage) -> None:
    await stage.put("group.max.session.timeout.ms", "9999")
    assert await joined(stage, join()) == ErrorCode.INVALID_SESSION_TIMEOUT


async def heard(
    stage: Stage, epoch: int = 0, member_id: str = "me"
) -> ConsumerGroupHeartbeatResponse:
    request = beat(epoch, member_id=member_id, owned=() if epoch == 0 else None)
    return await stage.admin.ask(request, ConsumerGroupHeartbeatResponse, 1)


@shows("group.max.size")
async def _(stage: Stage) -> None:
    assert (await heard(stage)).error_code == 0
    await stage.put("group.max.size", "1")
    refused = await heard(stage, member_id="other")
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    await stage.put("group.max.size", "2")
    assert (await heard(stage, member_id="other")).error_code == 0


@shows("group.consumer.session.timeout.ms")
async def _(stage: Stage) -> None:
    await stage.put("group.consumer.session.timeout.ms", "3000")
    epoch = (await heard(stage)).member_epoch
    await stage.pass_ms(2_900)
    assert (await heard(stage, epoch)).error_code == 0
    await stage.pass_ms(3_100)
    assert (await heard(stage, epoch)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@shows("group.consumer.heartbeat.interval.ms")
async def _(stage: Stage) -> None:
    epoch = (await heard(stage)).member_epoch
    await stage.put("group.consumer.heartbeat.interval.ms", "7000")
    assert (await heard(stage, epoch)).heartbeat_interval_ms == 7_000


@shows("group.share.session.timeout.ms")
async def _(stage: Stage) -> None:
    await stage.put("group.share.session.timeout.ms", "3000")
    assert isinstance(await share(stage.broker), ShareTold)
    await stage.pass_ms(2_900)
    assert isinstance(await share(stage.broker, 1), ShareTold)
    await stage.pass_ms(3_100)
    assert isinstance(await share(stage.broker, 1), UnknownMember)


@shows("group.share.heartbeat.interval.ms")
async def _(stage: Stage) -> None:
    await share(stage.broker)
    await stage.put("group.share.heartbeat.interval.ms", "7000")
    told = await share(stage.broker, 1)
    assert isinstance(told, ShareTold)
    assert told.heartbeat_ms == 7_000


@shows("group.consumer.migration.policy")
async def _(stage: Stage) -> None:
    await stage.put("group.consumer.migration.policy", "disabled")
    async with asyncio.TaskGroup() as tasks:
        joining = tasks.create_task(joined(stage, join()))
        await stage.until(lambda: has_group(stage))
        await stage.pass_ms(200)
    assert joining.result() == 0
    assert (await heard(stage)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    await stage.put("group.consumer.migration.policy", "bidirectional")
    # It may come in; now, or when the members have agreed.
    assert (await heard(stage)).error_code in (0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@shows("offset.metadata.max.bytes")
async def _(stage: Stage) -> None:
    note = commit(1, metadata="x" * 100)
    assert await committed(stage.admin.client, note) == 0
    await stage.put("offset.metadata.max.bytes", "99")
    code = await committed(stage.admin.client, note)
    assert code == ErrorCode.OFFSET_METADATA_TOO_LARGE


@shows("groups.offsets_retention_ms")
async def _(stage: Stage) -> None:
    assert await committed(stage.admin.client, commit(1)) == 0
    check_ms = stage.broker.config.groups.offsets_check_ms
    await stage.pass_ms(check_ms)
    assert await fetched(stage.admin.client) == {("orders", 0): 1}
    await stage.put("groups.offsets_retention_ms", "1000")
    await stage.pass_ms(check_ms)
    await stage.until(lambda: stage.broker.coordinators.of(GROUP).offsets_bytes == 0)
    assert await fetched(stage.admin.client) == {}


# ── producers, transactions, readers ─────────────────────────────────────────────────────────


@shows("producer.id.expiration.ms")
async def _(stage: Stage) -> None:
    partition = stage.broker.partition("orders", 0)
    one = [Record(offset=0, timestamp_ms=stage.clock.ms, key=None, value=b"x")]
    batch = build_batch(
        one, producer=ProducerStamp(producer_id=5, producer_epoch=0, base_sequence=0)
    )
    partition.append(memoryview(batch), lambda _: None)
    stage.broker.flush()
    await stage.until(lambda: len(partition.producers) == 1)
    await stage.pass_ms(60_000)
    assert len(partition.producers) == 1
    await stage.put("producer.id.expiration.ms", "50000")
    stage.clock.ms += 1_000

    def is_forgotten() -> bool:
        stage.broker.tick()
        return len(partition.producers) == 0

    await stage.until(is_forgotten)


async def begun(stage: Stage, timeout_ms: int, name: str = "shop") -> int:
    find = FindCoordinatorRequest(key=name, key_type=TRANSACTION)
    await stage.admin.ask(find, FindCoordinatorResponse, 1)
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
    return (await stage.admin.ask(request, InitProducerIdResponse, 4)).error_code


@shows("transaction.max.timeout.ms")
async def _(stage: Stage) -> None:
    assert await begun(stage, 60_000) == 0
    await stage.put("transaction.max.timeout.ms", "59999")
    assert await begun(stage, 60_000) == ErrorCode.INVALID_TRANSACTION_TIMEOUT


@shows("transactional.id.expiration.ms")
async def _(stage: Stage) -> None:
    assert await begun(stage, 60_000) == 0
    half_hour_ms = 1_800_000
    await stage.pass_ms(half_hour_ms)
    request = DescribeTransactionsRequest(transactional_ids=("shop",))

    async def found() -> int:
        answer = await stage.admin.ask(request, DescribeTransactionsResponse)
        return answer.transaction_states[0].error_code

    assert await found() == 0
    await stage.put("transactional.id.expiration.ms", "1000")
    await stage.pass_ms(half_hour_ms)
    assert await found() == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@shows("fetch.max.bytes")
async def _(stage: Stage) -> None:
    await stage.admin.produce("orders", 3)

    async def size() -> int:
        answer = await stage.admin.ask(a_request({0: 0}), FetchResponse, 12)
        return len(answer.responses[0].partitions[0].records or b"")

    whole = await size()
    await stage.put("fetch.max.bytes", "10")
    assert await size() * 3 == whole


@shows("max.incremental.fetch.session.cache.slots")
async def _(stage: Stage) -> None:
    sessions = stage.broker.fetch_sessions
    for count in (1, 2):
        await stage.admin.ask(a_request({0: 0}, epoch=0), FetchResponse, 12)
        assert len(sessions) == count
    await stage.put("max.incremental.fetch.session.cache.slots", "1")
    assert len(sessions) == 1
    await stage.admin.ask(a_request({0: 0}, epoch=0), FetchResponse, 12)
    assert len(sessions) == 1


# ── housekeeping ─────────────────────────────────────────────────────────────────────────────


@shows("log.retention.check.interval.ms")
async def _(stage: Stage) -> None:
    settings = [("retention.bytes", "1"), ("segment.bytes", "1024")]
    await stage.admin.create("small", settings=settings)
    partition = stage.broker.partition("small", 0)
    await stage.pass_ms(0)  # the first look
    await stage.admin.produce("small", 20)
    await stage.pass_ms(2_000)
    assert partition.first_offset == 0
    await stage.put("log.retention.check.interval.ms", "1000")
    stage.clock.ms += 2_000

    def is_trimmed() -> bool:
        stage.broker.tick()
        return partition.first_offset > 0

    await stage.until(is_trimmed)


@shows("housekeeping.scrub_bytes_per_second")
async def _(stage: Stage) -> None:
    await stage.admin.create("small", settings=[("segment.bytes", "1024")])
    await stage.admin.produce("small", 20)
    await stage.pass_ms(60_000)
    assert stage.broker.scrubber.bytes_read == 0
    await stage.put("housekeeping.scrub_bytes_per_second", "1000000")

    def has_read() -> bool:
        stage.clock.ms += 100
        stage.broker.tick()
        return stage.broker.scrubber.bytes_read > 0

    await stage.until(has_read)


OFF = BrokerConfig(housekeeping=HousekeepingConfig(scrub_bytes_per_second=0))


CLOSED = {
    "connections.max.idle.ms": "idle peer=127.0.0.1: a kafka connection",
    "max.connections": f"connections peer={OTHERS}: too many",
    "max.connections.per.ip": f"connections_per_address peer={OTHERS}: too many",
    "max.connection.creation.rate": "rate peer=192.0.2.2: too many",
    "limits.connection_rate_per_address_max": f"rate_per_address peer={OTHERS}: too many",
}
"""The log lines of a broker about the connections that a setting closes."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.complains(f"connection_closed reason={CLOSED[name]}")
            if name in CLOSED
            else (),
        )
        for name in SHOWN
    ],
)
def test_a_setting_of_the_configuration_takes_effect_at_once(tmp_path: Path, name: str) -> None:
    config = OFF if "scrub" in name else None
    played(tmp_path / "data", SHOWN[name], config)


def test_each_dynamic_setting_has_a_test_of_its_effect() -> None:
    assert {name for name, row in ROWS.items() if row.key} == SHOWN.keys() | CLUSTER_WIDE


def another(topic_setting: str) -> str:
    """Return a value that is not the default."""
    default, kind = value_text(DEFAULTS, topic_setting), TOPIC_SETTINGS[topic_setting].kind
    if kind is float:
        return "0.25"
    if kind is not int:
        return next(str(one) for one in kind if str(one) != default)
    number = int(default)
    return str(number - 1 if number > 1 else number + 2)


FIXED = {"unclean.leader.election.enable"}
"""Defaults of topics with only one allowed value."""


def test_a_default_with_only_one_allowed_value_accepts_no_other(tmp_path: Path) -> None:
    assert {
        name for name, row in ROWS.items() if row.topic and TOPIC_SETTINGS[row.topic].kind is Never
    } == FIXED

    async def show(stage: Stage) -> None:
        for name in FIXED:
            code, _ = await stage.admin.alter((name, SET, "true"), topic="", resource_type=BROKER)
            assert code == ErrorCode.INVALID_CONFIG

    played(tmp_path / "data", show)


@pytest.mark.parametrize(
    "name", [name for name, row in ROWS.items() if row.topic and name not in FIXED]
)
def test_a_default_of_topics_applies_to_open_partitions(tmp_path: Path, name: str) -> None:
    topic_setting = ROWS[name].topic
    value = another(topic_setting)

    async def show(stage: Stage) -> None:
        partition = stage.broker.partition("orders", 0)
        await stage.put(name, value)
        field = topic_setting.replace(".", "_")
        assert str(getattr(partition.settings, field)) == value
        rest = [one.name for one in fields(DEFAULTS) if one.name != field]
        assert all(getattr(partition.settings, one) == getattr(DEFAULTS, one) for one in rest)

    played(tmp_path / "data", show)


def test_a_topics_own_setting_overrides_the_default_of_its_broker(tmp_path: Path) -> None:
    async def show(stage: Stage) -> None:
        await stage.admin.create("own", settings=[("max.message.bytes", "1000")])
        await stage.put("message.max.bytes", "100")
        assert await stage.admin.produce("orders") == ErrorCode.MESSAGE_TOO_LARGE
        assert await stage.admin.produce("own") == 0
        await stage.admin.create("later")
        assert await stage.admin.produce("later") == ErrorCode.MESSAGE_TOO_LARGE

    played(tmp_path / "data", show)
