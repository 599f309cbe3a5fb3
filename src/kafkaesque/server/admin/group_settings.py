"""A group's settings: describing all of them, and changing its own."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.errors import InvalidSetting
from kafkaesque.group_settings import (
    DEFAULTS,
    GROUP_SETTINGS,
    Switch,
    group_value_text,
    resolve_group,
)
from kafkaesque.machines.catalog.group_settings import set_group_settings
from kafkaesque.server.admin.config_operation import Operation
from kafkaesque.server.admin.resources import Setting, SettingType, Source, Synonym, fixed
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import InvalidRequest
from kafkaesque.wire.messages.incremental_alter_configs import AlterableConfig


def group_settings(broker: Broker, group: str) -> list[Setting]:
    """Return all settings of a group, including those never set."""
    overrides = broker.catalog.group_settings.get(group, {})
    return sorted([*_of_broker(broker), *_own(overrides)], key=lambda one: one.name)


def _of_broker(broker: Broker) -> Iterator[Setting]:
    """Return what is the same for all groups of a broker."""
    config = broker.config.groups
    known = {
        "consumer.heartbeat.interval.ms": config.consumer_heartbeat_ms,
        "consumer.session.timeout.ms": config.consumer_session_timeout_ms,
        "share.heartbeat.interval.ms": config.share_heartbeat_ms,
        "share.session.timeout.ms": config.share_session_timeout_ms,
    }
    for name, value_ms in known.items():
        yield fixed(name, str(value_ms), SettingType.INT, Source.DEFAULT)


def _own(overrides: Mapping[str, str]) -> Iterator[Setting]:
    for name, row in GROUP_SETTINGS.items():
        default = group_value_text(DEFAULTS, name)
        synonyms: list[Synonym] = [(name, default, Source.DEFAULT)]
        if name in overrides:
            synonyms.insert(0, (name, overrides[name], Source.GROUP))
        kind = {int: SettingType.INT, Switch: SettingType.BOOLEAN}.get(row.kind, SettingType.STRING)
        yield Setting(
            name=name,
            value=synonyms[0][1],
            source=synonyms[0][2],
            type=kind,
            is_read_only=False,
            synonyms=tuple(synonyms),
            documentation=row.does,
        )


async def alter_group(
    broker: Broker, group: str, changes: Sequence[AlterableConfig], *, is_dry_run: bool
) -> None:
    """Change some settings of a group; raises InvalidRequest, InvalidSetting."""
    if is_dry_run:
        before = broker.catalog.group_settings.get(group, {})
        set_group_settings(broker.catalog, group, _changed(before, changes))
        return

    def change(answer: Answer) -> None:
        before = broker.catalog.group_settings.get(group, {})  # each time: others change it
        after = _changed(before, changes)
        broker.set_group_settings(group, after, answer, expected=before)

    await carried_out(change)


async def replace_group_settings(
    broker: Broker, group: str, settings: Mapping[str, str], *, is_dry_run: bool
) -> None:
    """Replace all settings of a group; raises InvalidSetting."""
    if is_dry_run:
        set_group_settings(broker.catalog, group, settings)
        return
    await carried_out(partial(broker.set_group_settings, group, settings))


def _changed(settings: Mapping[str, str], changes: Sequence[AlterableConfig]) -> dict[str, str]:
    after = dict(settings)
    for change in changes:
        if change.name not in GROUP_SETTINGS:
            raise InvalidSetting(f"unknown group setting {change.name[:100]!r}")
        match change.config_operation:
            case Operation.DELETE:
                after.pop(change.name, None)
            case Operation.SET:
                if change.value is None:
                    raise InvalidRequest(f"{change.name} needs a value")
                after[change.name] = change.value
            case Operation.APPEND | Operation.SUBTRACT:
                raise InvalidSetting(f"{change.name} is not a list")
            case other:
                raise InvalidRequest(f"unknown operation {other} on settings")
    resolve_group(after)
    return after
