"""What can be set for a topic: Kafka's names where Kafka has the setting, and the same meaning.

A field `retention_ms` is the setting `retention.ms`. A setting that we do not know is refused,
never silently kept. Some are taken for the sake of Kafka's tools and do nothing here: each says so.
"""

import ast
import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any

from kafkaesque.errors import InvalidSetting

UNLIMITED = -1
_DAY_MS = 24 * 3600 * 1000
_INT64_MAX = (1 << 63) - 1
_INT32_MAX = (1 << 31) - 1
_THROTTLED = re.compile(r"\*?|\d+:\d+(,\d+:\d+)*")
_TEXT_CHARS_MAX = 100_000


class CleanupPolicy(StrEnum):
    """What becomes of old records."""

    DELETE = "delete"
    COMPACT = "compact"
    BOTH = "compact,delete"


class CompressionType(StrEnum):
    """How batches are stored."""

    PRODUCER = "producer"
    UNCOMPRESSED = "uncompressed"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class FlushPolicy(StrEnum):
    """When a batch counts as written: synced, synced now and then, or handed to the system."""

    ALWAYS = "always"
    INTERVAL = "interval"
    OS = "os"


class Flag(StrEnum):
    """On or off, as Kafka writes it."""

    FALSE = "false"
    TRUE = "true"


class Never(StrEnum):
    """What nobody can switch on."""

    FALSE = "false"


class TimestampType(StrEnum):
    """Whose clock the records' timestamps come from."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """Every setting of one topic, with what holds where nothing was set."""

    cleanup_policy: CleanupPolicy = CleanupPolicy.DELETE
    """Delete old segments, or keep the newest record of each key, or both."""

    compression_gzip_level: int = -1
    """How hard compression.type=gzip tries: 1 is fast, 9 is small, -1 is gzip's own choice."""

    compression_lz4_level: int = 9
    """How hard compression.type=lz4 tries; 9, the default, is the fast one, as in Kafka."""

    compression_type: CompressionType = CompressionType.PRODUCER
    """Keep what the producer chose, or pack each batch anew: the latter decodes every record."""

    compression_zstd_level: int = 3
    """How hard compression.type=zstd tries: more is smaller and slower."""

    delete_retention_ms: int = _DAY_MS
    """How long a compacted topic remembers that a key was deleted."""

    file_delete_delay_ms: int = 60_000
    """Taken, without effect: a file goes as soon as nobody reads it."""

    flush_messages: int = _INT64_MAX
    """Sync after so many records, too, if flush.policy is not always."""

    flush_ms: int = 1000
    """How often to sync under flush.policy=interval."""

    flush_policy: FlushPolicy = FlushPolicy.ALWAYS
    """When an append counts: after it was synced, or before."""

    follower_replication_throttled_replicas: str = ""
    """Taken, without effect: a broker's leader.replication.throttled.rate holds for all moves."""

    index_interval_bytes: int = 4096
    """How many bytes lie between two entries of an index, 1 MiB at most; for new segments."""

    leader_replication_throttled_replicas: str = ""
    """Taken, without effect: a broker's leader.replication.throttled.rate holds for all moves."""

    max_compaction_lag_ms: int = _INT64_MAX
    """A record is considered for compaction at the latest when it is so old."""

    max_message_bytes: int = 1_048_588
    """The largest batch that is taken: Kafka's own default, so that its clients' settings fit."""

    message_timestamp_after_max_ms: int = _INT64_MAX
    """Refuse batches whose newest timestamp is so far ahead of the broker's clock."""

    message_timestamp_before_max_ms: int = _INT64_MAX
    """Refuse batches whose first timestamp is so far behind the broker's clock."""

    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    """The producer's time, or the time of the append."""

    min_cleanable_dirty_ratio: float = 0.5
    """Compact when this share of the log is new, or something in it waits for too long."""

    min_compaction_lag_ms: int = 0
    """Records younger than this are not compacted away."""

    min_insync_replicas: int = 1
    """With acks=all at least this many replicas must have a batch; a majority must in any case."""

    preallocate: Flag = Flag.FALSE
    """Taken, without effect: segments grow as they are written."""

    retention_bytes: int = UNLIMITED
    """Delete the oldest segments beyond this size; -1 keeps all."""

    retention_ms: int = 7 * _DAY_MS
    """Delete segments whose newest record is older; -1 keeps all."""

    segment_bytes: int = 1 << 30
    """Begin a new segment at this size."""

    segment_index_bytes: int = 10 << 20
    """Taken, without effect: an index is as large as its segment needs."""

    segment_jitter_ms: int = 0
    """By how much of segment.ms a partition may be early, so that not all roll at once."""

    segment_ms: int = 7 * _DAY_MS
    """Begin a new segment when the first record of the present one is older."""

    unclean_leader_election_enable: Never = Never.FALSE
    """Only false: a replica that lacks acknowledged records never leads."""

    @property
    def is_append_time(self) -> bool:
        """Whether records bear the time of the broker that led when they came."""
        return self.message_timestamp_type is TimestampType.LOG_APPEND_TIME


DEFAULTS = TopicSettings()

_SMALLEST: Mapping[str, int] = {
    "compression_gzip_level": -1,
    "compression_lz4_level": 1,
    "compression_zstd_level": -131_072,
    "delete_retention_ms": 0,
    "file_delete_delay_ms": 0,
    "flush_messages": 1,
    "flush_ms": 1,
    "index_interval_bytes": 0,
    "max_compaction_lag_ms": 1,
    "max_message_bytes": 0,
    "message_timestamp_after_max_ms": 0,
    "message_timestamp_before_max_ms": 0,
    "min_compaction_lag_ms": 0,
    "min_insync_replicas": 1,
    "retention_bytes": UNLIMITED,
    "retention_ms": UNLIMITED,
    "segment_bytes": 1 << 10,
    "segment_index_bytes": 4,
    "segment_jitter_ms": 0,
    "segment_ms": 1,
}
_LARGEST: Mapping[str, int] = {
    "compression_gzip_level": 9,
    "compression_lz4_level": 17,
    "compression_zstd_level": 22,
    "index_interval_bytes": _INT32_MAX,
    "max_message_bytes": 64 << 20,
    "min_insync_replicas": 100,
    "segment_bytes": _INT32_MAX,
    "segment_index_bytes": _INT32_MAX,
}
_KINDS: Mapping[str, type[Any]] = {
    field.name: type(getattr(DEFAULTS, field.name)) for field in fields(TopicSettings)
}

NAMES: tuple[str, ...] = tuple(name.replace("_", ".") for name in _KINDS)
"""The names of all settings, as clients write them."""


_SINCE_LEVEL_3 = frozenset(
    {
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "file.delete.delay.ms",
        "flush.messages",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "max.compaction.lag.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "min.cleanable.dirty.ratio",
        "preallocate",
        "segment.index.bytes",
        "segment.jitter.ms",
        "unclean.leader.election.enable",
    }
)


def level_of(name: str) -> int:
    """Return the `catalog.version` from which on all brokers of a cluster know a setting."""
    return 3 if name in _SINCE_LEVEL_3 else 1


def resolve(overrides: Mapping[str, str], defaults: TopicSettings = DEFAULTS) -> TopicSettings:
    """Return the settings with some set otherwise; raises InvalidSetting for what makes no sense.

    Names and values are as clients write them.
    """
    values = {one.name: getattr(defaults, one.name) for one in fields(TopicSettings)}
    for name, text in overrides.items():
        field = _field_of(name)
        values[field] = _parse(name, field, text)
    return TopicSettings(**values)


def value_text(settings: TopicSettings, name: str) -> str:
    """Return one setting as clients write it; raises InvalidSetting for an unknown name."""
    return str(getattr(settings, _field_of(name)))


@cache
def reasons() -> Mapping[str, str]:
    """Return what each setting is for, by its name; read from the text beside the fields.

    Nothing where this file's own text is not installed.
    """
    try:
        source = inspect.getsource(TopicSettings)
    except OSError:
        return {}
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, following in pairwise(definition.body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=field)),
                ast.Expr(value=ast.Constant(value=str(reason))),
            ):
                found[field.replace("_", ".")] = " ".join(reason.split())
    return found


def range_of(name: str) -> tuple[int, int]:
    """Return the least and the greatest value of a setting that is a number."""
    field = _field_of(name)
    return _SMALLEST[field], _LARGEST.get(field, _INT64_MAX)


def kind_of(name: str) -> type[Any]:
    """Return the type of a setting's value: int, float, str, or one of the enumerations here."""
    return _KINDS[_field_of(name)]


def _field_of(name: str) -> str:
    if name not in NAMES:
        raise InvalidSetting(f"there is no topic setting {name!r}")
    return name.replace(".", "_")


def _parse(name: str, field: str, text: str) -> float | str:
    kind = _KINDS[field]
    if issubclass(kind, StrEnum):
        # Kafka takes the cleanup policies in any order.
        wanted = ",".join(sorted(part.strip() for part in text.split(",")))
        if wanted not in list(kind):
            raise InvalidSetting(f"{name} is one of {', '.join(kind)}, not {text!r}")
        return kind(wanted)
    if kind is str:
        if len(text) > _TEXT_CHARS_MAX or not _THROTTLED.fullmatch(text):
            raise InvalidSetting(f"{name} is * or a list as 0:1,1:2 of partitions and brokers")
        return text
    if kind is float:
        return _share(name, text)
    try:
        value = int(text)
    except ValueError:
        raise InvalidSetting(f"{name} is a whole number, not {text!r}") from None
    smallest, largest = range_of(name)
    if not smallest <= value <= largest:
        raise InvalidSetting(f"{name} is from {smallest} to {largest}, not {value}")
    return value


def _share(name: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise InvalidSetting(f"{name} is from 0 to 1, not {text!r}")
    return share
