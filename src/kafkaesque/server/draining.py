"""Whether a broker is being emptied, as one of its settings.

Kafka has no API to drain a broker. This is the setting `draining` of the broker's own resource: the
catalog holds it, so any broker tells it and changes it, also for one that is down.
"""

from collections.abc import Callable
from functools import partial

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.errors import InvalidRequest, InvalidSetting
from kafkaesque.machines.catalog_moves import drain_broker
from kafkaesque.server.operation import Operation
from kafkaesque.server.resources import Setting, SettingType, Source
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.incremental_alter_configs import AlterableConfig

NAME = "draining"
_TEXTS = {True: "true", False: "false"}
_DIGITS_MAX = 10
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


def draining_change(
    broker: Broker, node: NodeId, change: AlterableConfig
) -> Callable[[Answer], None]:
    """Return what begins to empty a broker, or ceases to; raises if that cannot be."""
    if change.config_operation not in (Operation.SET, Operation.DELETE):
        raise InvalidRequest(f"{NAME} is no list to add to or to take from")
    value = _TEXTS[False] if change.config_operation == Operation.DELETE else change.value
    if value not in _TEXTS.values():
        raise InvalidSetting(f"{NAME} is true or false, not {value!r}")
    is_draining = value == _TEXTS[True]
    drain_broker(broker.catalog, node, is_draining=is_draining)  # only decides
    return partial(broker.drain_broker, node, is_draining=is_draining)
