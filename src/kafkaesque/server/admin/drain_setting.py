"""Draining of a broker, as one of its settings.

Kafka has no API to drain a broker. This is the setting `draining` of the broker's own resource: the
catalog holds it, so any broker reports and changes it, even for a broker that is down.
"""

from collections.abc import Callable
from functools import partial

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.errors import InvalidSetting
from kafkaesque.machines.catalog.catalog_moves import drain_broker
from kafkaesque.server.admin.config_operation import Operation
from kafkaesque.server.admin.resources import Setting, SettingType, Source
from kafkaesque.server.requests.errors import InvalidRequest
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.incremental_alter_configs import AlterableConfig

NAME = "draining"
_TEXTS = {True: "true", False: "false"}
_DIGITS_MAX = 10
_SHOWN_MAX = 100


def draining_setting(broker: Broker, node: NodeId) -> Setting:
    """Return the setting of one broker."""
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
        documentation="Whether the broker is drained: its partitions move elsewhere.",
    )


def node_named(name: str, broker: Broker) -> NodeId:
    """Return the broker that a resource names; raises InvalidRequest if there is none."""
    # The length is bounded first: int() of thousands of digits raises.
    is_number = name.isdecimal() and len(name) <= _DIGITS_MAX
    if is_number and int(name) in {broker.node, *broker.catalog.brokers}:
        return int(name)
    raise InvalidRequest(f"there is no broker {name[:_SHOWN_MAX]!r}")


def draining_change(
    broker: Broker, node: NodeId, change: AlterableConfig
) -> Callable[[Answer], None]:
    """Return the action that starts or stops draining a broker; raises if it is refused."""
    if change.config_operation not in (Operation.SET, Operation.DELETE):
        raise InvalidRequest(f"{NAME} is not a list")
    value = _TEXTS[False] if change.config_operation == Operation.DELETE else change.value
    if value not in _TEXTS.values():
        raise InvalidSetting(f"{NAME} must be true or false, not {value!r}")
    is_draining = value == _TEXTS[True]
    drain_broker(broker.catalog, node, is_draining=is_draining)  # checks only
    return partial(broker.drain_broker, node, is_draining=is_draining)
