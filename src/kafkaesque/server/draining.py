"""A broker's settings that can be changed while it runs: being emptied, and throttles.

Kafka has no API to drain a broker. This is the setting `draining` of the broker's own resource: the
catalog holds it, so any broker tells it and changes it, also for one that is down.
"""

from collections.abc import Sequence
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.errors import InvalidRequest, InvalidSetting
from kafkaesque.machines.catalog_moves import drain_broker
from kafkaesque.server.resources import Setting, SettingType, Source
from kafkaesque.server.waiting import carried_out
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.incremental_alter_configs import AlterableConfig

NAME = "draining"
THROTTLES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Taken from Kafka's tools, which set and clear them around each move, and not kept.

Moves have limits of their own (`ClusterConfig`), so that they need none from outside.
"""
_TEXTS = {True: "true", False: "false"}
_DELETE = 1
_SET = 0
_DIGITS_MAX = 10
_RATE_DIGITS_MAX = 18
_SHOWN_MAX = 100


def draining_setting(broker: Broker, node: NodeId) -> Setting:
    """Return the setting as it is told of one broker."""
    known = broker.catalog.brokers.get(node)
    is_draining = known is not None and known.is_draining
    source = Source.DYNAMIC_BROKER if is_draining else Source.DEFAULT
    return Setting(
        name=NAME,
        value=_TEXTS[is_draining],
        source=source,
        type=SettingType.BOOLEAN,
        is_read_only=False,
        synonyms=((NAME, _TEXTS[is_draining], source),),
        documentation="Whether it is to be emptied: its partitions go elsewhere.",
    )


def node_named(name: str, broker: Broker) -> NodeId:
    """Return the broker that a resource names; raises InvalidRequest if there is none."""
    # The length is bounded first: int() of thousands of digits raises.
    is_number = name.isdecimal() and len(name) <= _DIGITS_MAX
    if is_number and int(name) in {broker.node, *broker.catalog.brokers}:
        return int(name)
    raise InvalidRequest(f"there is no broker {name[:_SHOWN_MAX]!r}")


async def alter_broker(
    broker: Broker, name: str, changes: Sequence[AlterableConfig], *, is_dry_run: bool
) -> None:
    """Drain a broker, or cease to; raises InvalidRequest, InvalidSetting, what the catalog does."""
    node = broker.node if name == "" else node_named(name, broker)
    for change in changes:
        if change.name in THROTTLES:
            _check_rate(change)
            continue
        if change.name != NAME or name == "":
            raise InvalidRequest(
                f"of a broker's settings only {NAME} can be changed while it runs, "
                f"not {change.name}"
            )
        if change.config_operation not in (_SET, _DELETE):
            raise InvalidRequest(f"{NAME} is no list to add to or to take from")
        value = _TEXTS[False] if change.config_operation == _DELETE else change.value
        if value not in _TEXTS.values():
            raise InvalidSetting(f"{NAME} is true or false, not {value!r}")
        is_draining = value == _TEXTS[True]
        drain_broker(broker.catalog, node, is_draining=is_draining)  # only decides
        if not is_dry_run:
            await carried_out(partial(broker.drain_broker, node, is_draining=is_draining))


def _check_rate(change: AlterableConfig) -> None:
    """Raise InvalidSetting for what is no number of bytes in a second."""
    value = change.value or ""
    is_number = value.isdecimal() and len(value) <= _RATE_DIGITS_MAX
    if change.config_operation == _DELETE or (change.config_operation == _SET and is_number):
        return
    raise InvalidSetting(
        f"{change.name} is a number of bytes in a second, not {value[:_SHOWN_MAX]!r}"
    )
