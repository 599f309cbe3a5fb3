"""A broker's settings: describing all of them, and changing the dynamic ones.

They have Kafka's names if Kafka has them, else their key in the configuration file.
`dynamic_settings.py` lists those that can be changed at run time; the rest are read-only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.broker.problems import problems
from kafkaesque.dynamic_settings import (
    ROWS,
    THROTTLES,
    check,
    default_name,
    is_list,
    name_of,
    type_of,
)
from kafkaesque.errors import InvalidSetting
from kafkaesque.machines.catalog.broker_settings import (
    ALL_BROKERS,
    can_be_kept,
    set_broker_settings,
)
from kafkaesque.machines.catalog.catalog_decider import REPLICATION
from kafkaesque.server.admin.config_operation import Operation, edited
from kafkaesque.server.admin.drain_setting import NAME as DRAINING
from kafkaesque.server.admin.drain_setting import draining_change, draining_setting, node_named
from kafkaesque.server.admin.resources import (
    SetHere,
    Setting,
    SettingType,
    Source,
    Synonym,
    changed_at_run_time,
    default_synonyms,
    fixed,
)
from kafkaesque.server.admin.resources import type_of as type_of_topics
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import InvalidRequest
from kafkaesque.settings import OF_THE_BROKER, SECTIONS, Key, Value, keys_of
from kafkaesque.topic_settings import TOPIC_SETTINGS
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.incremental_alter_configs import AlterableConfig

CLOCK_DOUBT = "clock.doubt"
PROBLEMS = "problems"
_TOLD_SECTIONS = ("broker", "limits", *OF_THE_BROKER)
_TYPES: Mapping[type[Value], SettingType] = {
    bool: SettingType.BOOLEAN,
    float: SettingType.DOUBLE,
    int: SettingType.LONG,
}
_SHOWN_MAX = 100


# ── describing ───────────────────────────────────────────────────────────────────────────────


def broker_settings(broker: Broker, address: str) -> list[Setting]:
    """Return all settings of this broker, which the client reaches by `address`."""
    set_here = changed_at_run_time(broker, broker.node)
    known = [
        *_facts(broker, address),
        *_topic_defaults(broker, set_here),
        *_configured(broker, set_here),
        *_without_effect(set_here),
        draining_setting(broker, broker.node),
    ]
    return sorted(known, key=lambda setting: setting.name)


def settings_of_other(broker: Broker, node: NodeId) -> list[Setting]:
    """Return another broker's settings in the catalog: those set for it at run time."""
    (source, texts), _ = changed_at_run_time(broker, node)
    known = [_changed_setting(name, text, source) for name, text in sorted(texts.items())]
    return [*known, draining_setting(broker, node)]


def settings_of_all(broker: Broker) -> list[Setting]:
    """Return the settings set for all brokers at run time."""
    _, (source, texts) = changed_at_run_time(broker, broker.node)
    return [_changed_setting(name, text, source) for name, text in sorted(texts.items())]


def _facts(broker: Broker, address: str) -> Iterator[Setting]:
    text, static = SettingType.STRING, Source.STATIC_BROKER
    yield fixed("node.id", str(broker.node), SettingType.INT, static)
    brokers = sum(1 for one in broker.catalog.brokers.values() if one.was_there)
    replication = str(min(REPLICATION, max(1, brokers)))
    yield fixed("default.replication.factor", replication, SettingType.INT, Source.DEFAULT)
    yield fixed("log.dirs", broker.data_folder, text, static)
    yield fixed("advertised.listeners", f"PLAINTEXT://{address}", text, static)
    doubt = "Why this broker's wall clock is in doubt; empty if it is not."
    yield fixed(CLOCK_DOUBT, broker.clocks.text, text, Source.DEFAULT, doubt)
    # Kafka has no API for a broker's health.
    lines = "\n".join(f"{one.kind.value}: {one.text}" for one in problems(broker))
    wrong = "The broker's current problems, one per line."
    yield fixed(PROBLEMS, lines, text, Source.DEFAULT, wrong)


def _topic_defaults(broker: Broker, set_here: SetHere) -> Iterator[Setting]:
    for name, row in TOPIC_SETTINGS.items():
        yield _setting(
            default_synonyms(name, broker, set_here),
            type_of_topics(name),
            f"Default for topics: {row.does}",
        )


def _configured(broker: Broker, set_here: SetHere) -> Iterator[Setting]:
    for section in _TOLD_SECTIONS:
        for key in keys_of(section):
            name = name_of(key)
            synonyms: list[Synonym] = [
                (name, texts[name], source) for source, texts in set_here if name in texts
            ]
            default, static = key.default, _static(broker, key)
            if static != default:
                synonyms.append((name, _text(static), Source.STATIC_BROKER))
            synonyms.append((name, _text(default), Source.DEFAULT))
            row = ROWS.get(name)
            kind = _TYPES.get(key.kind, SettingType.STRING)
            yield _setting(synonyms, kind, None if row is None else row.text)


def _without_effect(set_here: SetHere) -> Iterator[Setting]:
    """Return settings that are only stored, if set: they have no default."""
    for name, row in ROWS.items():
        if not row.key and not row.topic:
            synonyms = [(name, texts[name], source) for source, texts in set_here if name in texts]
            if synonyms:
                yield _setting(synonyms, SettingType.LONG, row.text)


def _setting(synonyms: Sequence[Synonym], kind: SettingType, documentation: str | None) -> Setting:
    name, value, source = synonyms[0]
    return Setting(
        name=name,
        value=value,
        source=source,
        type=kind,
        is_read_only=name not in ROWS,
        synonyms=tuple(synonyms),
        documentation=documentation,
    )


def _changed_setting(name: str, text: str, source: Source) -> Setting:
    row = ROWS.get(name)  # a later version may have more settings
    kind = SettingType.STRING if row is None else _TYPES.get(type_of(row), SettingType.STRING)
    return _setting([(name, text, source)], kind, None if row is None else row.text)


def _static(broker: Broker, key: Key) -> Value:
    live = broker.live
    match key.section:
        case "limits":
            part: object = live.static_limits
        case "broker":
            part = live.static
        case section:
            part = getattr(live.static, section)
    value: Value = getattr(part, key.field)
    return value


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ── changing ─────────────────────────────────────────────────────────────────────────────────


def check_is_this(broker: Broker, name: str) -> None:
    """Raise InvalidRequest unless a resource names this broker."""
    if node_named(name, broker) != broker.node:
        raise InvalidRequest(f"only broker {name} itself can describe and change this")


async def alter_broker(
    broker: Broker, name: str, changes: Sequence[AlterableConfig], *, is_dry_run: bool
) -> None:
    """Change some settings of a broker, or of all brokers if `name` is empty.

    Raises InvalidRequest, InvalidSetting, and what the catalog refuses.
    """
    node = ALL_BROKERS if name == "" else node_named(name, broker)
    steps = [_drain(broker, node, change) for change in changes if change.name == DRAINING]
    others = [change for change in changes if change.name != DRAINING]
    if not can_be_kept(broker.catalog):
        others = _beyond_throttles(broker, others)
    if others:

        def change(answer: Answer) -> None:
            before = broker.catalog.broker_settings.get(node, {})  # each time: others change it
            after = _changed(broker, before, others)
            _check(broker, node, after)
            broker.set_broker_settings(node, after, answer, expected=before)

        after = _changed(broker, broker.catalog.broker_settings.get(node, {}), others)
        _check(broker, node, after)
        set_broker_settings(broker.catalog, node, after)  # checks only
        steps.append(change)
    if not is_dry_run:
        for step in steps:
            await carried_out(step)


async def replace_settings(
    broker: Broker, name: str, settings: Mapping[str, str], *, is_dry_run: bool
) -> None:
    """Replace all run-time settings of a broker, or of all; raises like `alter_broker`."""
    node = ALL_BROKERS if name == "" else node_named(name, broker)
    for one in settings:
        _check_changeable(one)
    _check(broker, node, settings)
    set_broker_settings(broker.catalog, node, settings)  # checks only
    if not is_dry_run:
        await carried_out(partial(broker.set_broker_settings, node, settings))


def _drain(broker: Broker, node: NodeId, change: AlterableConfig) -> Callable[[Answer], None]:
    if node == ALL_BROKERS:
        raise InvalidRequest(f"{DRAINING} is set per broker: name one")
    return draining_change(broker, node, change)


def _beyond_throttles(broker: Broker, changes: Sequence[AlterableConfig]) -> list[AlterableConfig]:
    """Return the changes without those that Kafka's tools make around each partition move.

    Older versions accepted them without storing them, and so does a cluster with old brokers.
    """
    throttles = [change for change in changes if change.name in THROTTLES]
    for name, text in _changed(broker, {}, throttles).items():
        check(name, text)
    return [change for change in changes if change.name not in THROTTLES]


def _check(broker: Broker, node: NodeId, settings: Mapping[str, str]) -> None:
    """Raise InvalidSetting for values that are invalid alone or with the other settings."""
    for name, text in settings.items():
        check(name, text)
    known = broker.catalog.broker_settings
    if node == ALL_BROKERS:
        broker.live.check({**settings, **known.get(broker.node, {})})
    else:
        broker.live.check({**known.get(ALL_BROKERS, {}), **settings})


def _check_changeable(name: str) -> None:
    if name in ROWS:
        return
    if name in (DRAINING, *_read_only()):
        if name == DRAINING:
            raise InvalidRequest(f"{name} cannot be replaced together with other settings")
        raise InvalidRequest(f"{name} cannot be changed at run time")
    raise InvalidSetting(f"unknown broker setting {name[:_SHOWN_MAX]!r}")


def _read_only() -> Iterator[str]:
    yield from ("node.id", "default.replication.factor", "log.dirs", "advertised.listeners")
    yield from (CLOCK_DOUBT, PROBLEMS)
    yield from (default_name(name) for name in TOPIC_SETTINGS)
    yield from (name_of(key) for section in SECTIONS for key in keys_of(section))


def _changed(
    broker: Broker, settings: Mapping[str, str], changes: Sequence[AlterableConfig]
) -> dict[str, str]:
    """Return settings after the changes; raises InvalidRequest, InvalidSetting."""
    after = dict(settings)
    for change in changes:
        name, value = change.name, change.value
        _check_changeable(name)
        if change.config_operation == Operation.DELETE:
            after.pop(name, None)
            continue
        if value is None:
            raise InvalidRequest(f"{name} needs a value")
        match change.config_operation:
            case Operation.SET:
                after[name] = value
            case Operation.APPEND | Operation.SUBTRACT as operation:
                if not is_list(name):
                    raise InvalidSetting(f"{name} is not a list")
                now = after.get(name, str(broker.live.defaults.cleanup_policy))
                after[name] = edited(now, value, Operation(operation))
            case other:
                raise InvalidRequest(f"unknown operation {other} on settings")
    return after
