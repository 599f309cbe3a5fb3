"""Settings from a file, the environment and the command line, in one table of keys.

A key is the section and the field of its class in `SECTIONS`: `server.port` is `port` under
`[server]` in the TOML file and the variable `KAFKAESQUE_SERVER_PORT`. Flags win over variables,
variables over the file, the file over the defaults. Unknown keys and invalid values are refused,
never ignored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from kafkaesque.cluster_config import ClusterConfig, MoveConfig
from kafkaesque.config import (
    BrokerConfig,
    FetchConfig,
    HousekeepingConfig,
    LogConfig,
    ProducerConfig,
    RaftConfig,
)
from kafkaesque.coordinator_config import GroupConfig, TransactionConfig
from kafkaesque.errors import BadConfiguration
from kafkaesque.server_config import EventsConfig, LimitsConfig, ServerConfig, TextLimits

Value: TypeAlias = int | float | bool | str | Path

PREFIX = "KAFKAESQUE_"
CONFIG_VARIABLE = "KAFKAESQUE_CONFIG"
"""Names the configuration file, like the flag `--config`."""

SECTIONS: Mapping[str, type[Any]] = {
    "server": ServerConfig,
    "limits": LimitsConfig,
    "broker": BrokerConfig,
    "log": LogConfig,
    "raft": RaftConfig,
    "groups": GroupConfig,
    "producers": ProducerConfig,
    "transactions": TransactionConfig,
    "fetch": FetchConfig,
    "housekeeping": HousekeepingConfig,
    "moves": MoveConfig,
    "cluster": ClusterConfig,
    "text": TextLimits,
    "events": EventsConfig,
}
OF_THE_BROKER = (
    *("raft", "groups", "producers", "transactions"),
    *("fetch", "housekeeping", "moves", "cluster"),
)
"""Separate sections in the file, but parts of BrokerConfig in the program."""

_INT32_MAX = (1 << 31) - 1
_INT64_MAX = (1 << 63) - 1
_PARTITIONS_MAX = 10_000
"""Partitions of one topic, as in the catalog."""

_RANGES: Mapping[str, tuple[int, int]] = {
    "server.port": (0, (1 << 16) - 1),
    "server.stop_ms": (0, _INT64_MAX),
    "server.linger_ms": (0, _INT64_MAX),
    "limits.listen_backlog": (1, (1 << 16) - 1),
    "broker.partitions_default": (1, _PARTITIONS_MAX),
    # The index stores positions in a segment in 31 bits.
    "log.segment_bytes_max": (1, _INT32_MAX),
    "log.internal_segment_bytes_max": (1, _INT32_MAX),
    "groups.offsets_partitions": (1, _PARTITIONS_MAX),
    "groups.initial_rebalance_delay_ms": (0, _INT64_MAX),
    # Members receive these in 32 bits.
    "groups.consumer_heartbeat_ms": (1, _INT32_MAX),
    "groups.consumer_hasty_heartbeat_ms": (1, _INT32_MAX),
    "groups.share_heartbeat_ms": (1, _INT32_MAX),
    "transactions.state_partitions": (1, _PARTITIONS_MAX),
    "housekeeping.dirty_share_min": (0, 1),
    "housekeeping.scrub_bytes_per_second": (0, _INT64_MAX),
    # The gateway's own requests carry these in 32 bits.
    "text.fetch_bytes": (1, _INT32_MAX),
    "text.timeout_ms": (1, _INT32_MAX),
    "text.push_wait_ms": (1, _INT32_MAX),
}
"""Numbers whose range is not 1 to the largest 64-bit integer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one broker."""

    server: ServerConfig = field(default_factory=ServerConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    log: LogConfig = field(default_factory=LogConfig)
    text: TextLimits = field(default_factory=TextLimits)
    events: EventsConfig = field(default_factory=EventsConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting."""

    section: str
    field: str
    kind: type[Value]

    @property
    def name(self) -> str:
        """Return the key as in the file, with its section."""
        return f"{self.section}.{self.field}"

    @property
    def default(self) -> Value:
        """Return the default value."""
        found: Value = getattr(SECTIONS[self.section](), self.field)
        return found

    @property
    def variable(self) -> str:
        """Return the name of its environment variable."""
        return PREFIX + self.name.replace(".", "_").upper()


def keys_of(section: str) -> Iterator[Key]:
    """Yield the keys of one section, in the order of its class."""
    for one in fields(SECTIONS[section]):
        if one.default is MISSING:
            continue  # a separate section
        kind: type[Any] = type(one.default)
        yield Key(section=section, field=one.name, kind=Path if issubclass(kind, Path) else kind)


KEYS: Mapping[str, Key] = {key.name: key for section in SECTIONS for key in keys_of(section)}
_VARIABLE_PREFIXES = tuple(f"{PREFIX}{section.upper()}_" for section in SECTIONS)
"""Unknown variables with these prefixes are refused; others belong to other programs."""
_BY_VARIABLE: Mapping[str, Key] = {key.variable: key for key in KEYS.values()}


def load(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Value]) -> Settings:
    """Merge all sources of settings; `flags` are by key. Raises BadConfiguration."""
    if file is None and environment.get(CONFIG_VARIABLE):
        file = Path(environment[CONFIG_VARIABLE])
    values: dict[str, Value] = {}
    if file is not None:
        values |= _from_file(file)
    values |= _from_environment(environment)
    for name, value in flags.items():
        _check_range(KEYS[name], value, f"the flag for {name}")
        values[name] = value
    return _built(values)


def _built(values: Mapping[str, Value]) -> Settings:
    parts = {
        section: {key.field: values[key.name] for key in keys_of(section) if key.name in values}
        for section in SECTIONS
    }
    built = {name: SECTIONS[name](**parts[name]) for name in SECTIONS if name != "broker"}
    broker: dict[str, Any] = {**parts["broker"]}
    broker |= {name: built.pop(name) for name in OF_THE_BROKER}
    return Settings(broker=BrokerConfig(**broker), **built)


def _from_file(file: Path) -> dict[str, Value]:
    import tomllib  # imported late to start faster: most brokers have no file

    try:
        with file.open("rb") as stream:
            sections = tomllib.load(stream)
    except OSError as error:
        raise BadConfiguration(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"{file} is not TOML: {error}") from error
    values: dict[str, Value] = {}
    for section, content in sections.items():
        if section not in SECTIONS or not isinstance(content, dict):
            known = ", ".join(f"[{one}]" for one in SECTIONS)
            raise BadConfiguration(f"{file} has {section!r}; the only sections are {known}")
        for name, value in content.items():
            key = KEYS.get(f"{section}.{name}")
            if key is None:
                raise BadConfiguration(f"{file} sets {section}.{name}, which does not exist")
            values[key.name] = _from_toml(key, value, f"{key.name} in {file}")
    return values


def _from_toml(key: Key, value: object, where: str) -> Value:
    if key.kind is Path and isinstance(value, str):
        return Path(value)
    if issubclass(key.kind, StrEnum) and isinstance(value, str):
        return parse(key, value, where)
    if type(value) is not key.kind:
        raise BadConfiguration(f"{where} must be {_wanted(key)}, not {value!r}")
    _check_range(key, value, where)
    return value


def _from_environment(environment: Mapping[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for variable, text in environment.items():
        if not variable.startswith(_VARIABLE_PREFIXES):
            continue
        key = _BY_VARIABLE.get(variable)
        if key is None:
            raise BadConfiguration(f"the variable {variable} names no setting")
        values[key.name] = parse(key, text, f"the variable {variable}")
    return values


def parse(key: Key, text: str, where: str) -> Value:
    """Return the parsed value; raises BadConfiguration, which names `where` it is set."""
    if key.kind is bool:
        if text not in ("true", "false"):
            raise BadConfiguration(f"{where} must be true or false, not {text!r}")
        return text == "true"
    if key.kind not in (int, float) and not issubclass(key.kind, StrEnum):
        return key.kind(text)
    try:
        value = key.kind(text)
    except ValueError:
        raise BadConfiguration(f"{where} must be {_wanted(key)}, not {text!r}") from None
    _check_range(key, value, where)
    return value


def range_of(key: Key) -> tuple[int, int]:
    """Return the least and greatest value of a numeric key."""
    return _RANGES.get(key.name, (1, _INT64_MAX))


def _check_range(key: Key, value: Value, where: str) -> None:
    if key.kind in (int, float):
        smallest, largest = range_of(key)
        assert isinstance(value, int | float)
        if not smallest <= value <= largest:
            raise BadConfiguration(f"{where} must be from {smallest} to {largest}, not {value}")


def _wanted(key: Key) -> str:
    if key.kind is bool:
        return "true or false"
    if key.kind is float:
        return "a number"
    if issubclass(key.kind, StrEnum):
        return "one of " + ", ".join(key.kind)
    return "a whole number" if key.kind is int else "a text"
