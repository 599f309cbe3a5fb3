"""Log levels of a broker's parts; can be changed at run time, and are not persisted.

Levels have Kafka's names. A logger without a level inherits its parent's.
"""

import logging
from collections.abc import Mapping, Sequence

from kafkaesque.errors import InvalidSetting
from kafkaesque.server.admin.config_operation import Operation
from kafkaesque.server.admin.resources import Setting, SettingType, Source
from kafkaesque.server.requests.errors import InvalidRequest
from kafkaesque.wire.messages.incremental_alter_configs import AlterableConfig

ROOT = "root"
_OURS = "kafkaesque"
_SHOWN_MAX = 100

LEVELS: Mapping[str, int] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def logger_settings() -> list[Setting]:
    """Return the level of each logger."""
    levels = {ROOT: logging.root.level}
    levels |= {name: logging.getLogger(name).getEffectiveLevel() for name in _names()}
    return [_setting(name, level) for name, level in levels.items()]


def alter_loggers(changes: Sequence[AlterableConfig], *, is_dry_run: bool) -> None:
    """Change levels, all or none of them; raises InvalidRequest, InvalidSetting."""
    levels = {change.name: _level(change) for change in changes}
    if is_dry_run:
        return
    for name, level in levels.items():
        _logger(name).setLevel(level)


def _level(change: AlterableConfig) -> int:
    name = change.name
    if name != ROOT and name not in _names():
        raise InvalidSetting(f"unknown logger {name[:_SHOWN_MAX]!r}")
    match change.config_operation:
        case Operation.DELETE if name == ROOT:
            raise InvalidRequest(f"the logger {ROOT} must have a level")
        case Operation.DELETE:
            return logging.NOTSET
        case Operation.SET:
            level = LEVELS.get(change.value or "")
            if level is None:
                given = (change.value or "")[:_SHOWN_MAX]
                raise InvalidSetting(f"{name} must be one of {', '.join(LEVELS)}, not {given!r}")
            return level
        case _:
            raise InvalidRequest(f"the level of {name} is not a list")


def _names() -> list[str]:
    return sorted(
        name
        for name in logging.root.manager.loggerDict
        if name == _OURS or name.startswith(f"{_OURS}.")
    )


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _setting(name: str, level: int) -> Setting:
    text = [text for text, least in LEVELS.items() if least <= max(level, LEVELS["TRACE"])][-1]
    return Setting(
        name=name,
        value=text,
        source=Source.BROKER_LOGGER,
        type=SettingType.STRING,
        is_read_only=False,
        synonyms=((name, text, Source.BROKER_LOGGER),),
        documentation=None,
    )
