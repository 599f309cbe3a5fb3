"""Topic settings: Kafka's names where Kafka has the setting, with the same meaning.

A field `retention_ms` is the setting `retention.ms`, and its row describes it in full. An unknown
setting is refused, never silently stored. Some are accepted for Kafka's tools and have no effect;
their rows say so.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct

from kafkaesque.errors import InvalidSetting

T = TypeVar("T")

UNLIMITED = -1
_DAY_MS = 24 * 3600 * 1000
_INT64_MAX = (1 << 63) - 1
_INT32_MAX = (1 << 31) - 1
_THROTTLED = re.compile(r"\*?|\d+:\d+(,\d+:\d+)*")
_TEXT_CHARS_MAX = 100_000


class CleanupPolicy(StrEnum):
    """What happens to old records."""

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
    """When a batch counts as written: synced, synced at intervals, or handed to the system."""

    ALWAYS = "always"
    INTERVAL = "interval"
    OS = "os"


class Flag(StrEnum):
    """On or off, as Kafka writes it."""

    FALSE = "false"
    TRUE = "true"


class Never(StrEnum):
    """A flag that cannot be switched on."""

    FALSE = "false"


class TimestampType(StrEnum):
    """The clock behind the records' timestamps."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class TopicSetting(Struct, frozen=True, kw_only=True):
    """The row of one setting."""

    kind: type[Any]
    """The type of its value: int, float, str, or an enumeration of this module."""
    does: str
    """What it does, or why it has no effect."""
    of_brokers: str
    """The broker setting that holds its default; empty if there is none."""
    least: float
    most: float
    """The bounds of a number."""
    level: int
    """The first `catalog.version` at which all brokers of a cluster know it."""
    acts: bool
    """Whether it has any effect; a test shows the effect of each that does."""


def _row(
    default: T,
    does: str,
    *,
    of_brokers: str = "",
    least: float = 0,
    most: float = _INT64_MAX,
    level: int = 1,
    acts: bool = True,
) -> T:
    """Return a field of TopicSettings; the default determines the type."""
    about = TopicSetting(
        kind=type(default),
        does=does,
        of_brokers=of_brokers,
        least=least,
        most=most,
        level=level,
        acts=acts,
    )
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """All settings of one topic, with their defaults."""

    cleanup_policy: CleanupPolicy = _row(
        CleanupPolicy.DELETE,
        "Delete old segments, or keep the newest record of each key, or both.",
        of_brokers="log.cleanup.policy",
    )
    compression_gzip_level: int = _row(
        -1,
        "Effort of compression.type=gzip: 1 is fastest, 9 smallest, -1 is gzip's own default.",
        of_brokers="compression.gzip.level",
        least=-1,
        most=9,
        level=3,
    )
    compression_lz4_level: int = _row(
        9,
        "Effort of compression.type=lz4; 9, the default, is the fast one, as in Kafka.",
        of_brokers="compression.lz4.level",
        least=1,
        most=17,
        level=3,
    )
    compression_type: CompressionType = _row(
        CompressionType.PRODUCER,
        "Keep the producer's codec, or recompress each batch, which decodes every record.",
        of_brokers="compression.type",
    )
    compression_zstd_level: int = _row(
        3,
        "Effort of compression.type=zstd: higher is smaller and slower.",
        of_brokers="compression.zstd.level",
        least=-131_072,
        most=22,
        level=3,
    )
    delete_retention_ms: int = _row(
        _DAY_MS,
        "How long a compacted topic remembers that a key was deleted.",
        of_brokers="log.cleaner.delete.retention.ms",
    )
    file_delete_delay_ms: int = _row(
        60_000,
        "Accepted, without effect: a file is deleted as soon as no reader uses it.",
        of_brokers="log.segment.delete.delay.ms",
        level=3,
        acts=False,
    )
    flush_messages: int = _row(
        _INT64_MAX,
        "Also sync after this many records, if flush.policy is not always.",
        of_brokers="log.flush.interval.messages",
        least=1,
        level=3,
    )
    flush_ms: int = _row(
        1000,
        "How often to sync under flush.policy=interval.",
        of_brokers="log.flush.interval.ms",
        least=1,
    )
    flush_policy: FlushPolicy = _row(
        FlushPolicy.ALWAYS,
        "Whether an append is acknowledged after its sync, or before.",
        of_brokers="log.flush.policy",
    )
    follower_replication_throttled_replicas: str = _row(
        "",
        "Taken, without effect: a broker's leader.replication.throttled.rate holds for all moves.",
        level=3,
        acts=False,
    )
    index_interval_bytes: int = _row(
        4096,
        "Bytes between two index entries, 1 MiB at most; applies to new segments.",
        of_brokers="log.index.interval.bytes",
        most=_INT32_MAX,
        level=3,
    )
    leader_replication_throttled_replicas: str = _row(
        "",
        "Taken, without effect: a broker's leader.replication.throttled.rate holds for all moves.",
        level=3,
        acts=False,
    )
    max_compaction_lag_ms: int = _row(
        _INT64_MAX,
        "A record becomes eligible for compaction at this age at the latest.",
        of_brokers="log.cleaner.max.compaction.lag.ms",
        least=1,
        level=3,
    )
    max_message_bytes: int = _row(
        1_048_588,
        "The largest accepted batch; the default is Kafka's, so that client settings fit.",
        of_brokers="message.max.bytes",
        most=64 << 20,
    )
    message_timestamp_after_max_ms: int = _row(
        _INT64_MAX,
        "Refuse batches whose newest timestamp is more than this ahead of the broker's clock.",
        of_brokers="log.message.timestamp.after.max.ms",
        level=3,
    )
    message_timestamp_before_max_ms: int = _row(
        _INT64_MAX,
        "Refuse batches whose first timestamp is more than this behind the broker's clock.",
        of_brokers="log.message.timestamp.before.max.ms",
        level=3,
    )
    message_timestamp_type: TimestampType = _row(
        TimestampType.CREATE_TIME,
        "The producer's time, or the time of the append.",
        of_brokers="log.message.timestamp.type",
    )
    min_cleanable_dirty_ratio: float = _row(
        0.5,
        "Compact when this share of the log is new, or a record in it has waited too long.",
        of_brokers="log.cleaner.min.cleanable.ratio",
        most=1,
        level=3,
    )
    min_compaction_lag_ms: int = _row(
        0,
        "Records younger than this are not compacted away.",
        of_brokers="log.cleaner.min.compaction.lag.ms",
    )
    min_insync_replicas: int = _row(
        1,
        "With acks=all at least this many replicas must have a batch, and always a majority.",
        of_brokers="min.insync.replicas",
        least=1,
        most=100,
    )
    preallocate: Flag = _row(
        Flag.FALSE,
        "Accepted, without effect: segments grow as they are written.",
        of_brokers="log.preallocate",
        level=3,
        acts=False,
    )
    retention_bytes: int = _row(
        UNLIMITED,
        "Delete the oldest segments beyond this size; -1 keeps all.",
        of_brokers="log.retention.bytes",
        least=UNLIMITED,
    )
    retention_ms: int = _row(
        7 * _DAY_MS,
        "Delete segments whose newest record is older; -1 keeps all.",
        of_brokers="log.retention.ms",
        least=UNLIMITED,
    )
    segment_bytes: int = _row(
        1 << 30,
        "Start a new segment at this size.",
        of_brokers="log.segment.bytes",
        least=1 << 10,
        most=_INT32_MAX,
    )
    segment_index_bytes: int = _row(
        10 << 20,
        "Accepted, without effect: an index is as large as its segment needs.",
        of_brokers="log.index.size.max.bytes",
        least=4,
        most=_INT32_MAX,
        level=3,
        acts=False,
    )
    segment_jitter_ms: int = _row(
        0,
        "How much earlier than segment.ms a partition may roll, so that not all roll at once.",
        of_brokers="log.roll.jitter.ms",
        level=3,
    )
    segment_ms: int = _row(
        7 * _DAY_MS,
        "Start a new segment when the first record of the current one is older.",
        of_brokers="log.roll.ms",
        least=1,
    )
    unclean_leader_election_enable: Never = _row(
        Never.FALSE,
        "Only false, so without effect: a replica that lacks acknowledged records never leads.",
        of_brokers="unclean.leader.election.enable",
        level=3,
        acts=False,
    )

    @property
    def is_append_time(self) -> bool:
        """Whether records carry the time of their append at the leader."""
        return self.message_timestamp_type is TimestampType.LOG_APPEND_TIME


DEFAULTS = TopicSettings()

TOPIC_SETTINGS: Mapping[str, TopicSetting] = {
    one.name.replace("_", "."): one.metadata["about"] for one in fields(TopicSettings)
}
"""By name, as clients write it."""


def topic_setting(name: str) -> TopicSetting:
    """Return the row of a setting; raises InvalidSetting for an unknown name."""
    if name not in TOPIC_SETTINGS:
        raise InvalidSetting(f"unknown topic setting {name!r}")
    return TOPIC_SETTINGS[name]


def resolve(overrides: Mapping[str, str], defaults: TopicSettings = DEFAULTS) -> TopicSettings:
    """Return the settings with overrides applied; raises InvalidSetting for invalid ones.

    Names and values are as clients write them.
    """
    values = {one.name: getattr(defaults, one.name) for one in fields(TopicSettings)}
    for name, text in overrides.items():
        values[_field_of(name)] = _parse(name, topic_setting(name), text)
    return TopicSettings(**values)


def value_text(settings: TopicSettings, name: str) -> str:
    """Return one setting as clients write it; raises InvalidSetting for an unknown name."""
    topic_setting(name)
    return str(getattr(settings, _field_of(name)))


def _field_of(name: str) -> str:
    return name.replace(".", "_")


def _parse(name: str, row: TopicSetting, text: str) -> float | str:
    kind = row.kind
    if issubclass(kind, StrEnum):
        # Kafka accepts the cleanup policies in any order.
        wanted = ",".join(sorted(part.strip() for part in text.split(",")))
        if wanted not in list(kind):
            raise InvalidSetting(f"{name} must be one of {', '.join(kind)}, not {text!r}")
        return kind(wanted)
    if kind is str:
        if len(text) > _TEXT_CHARS_MAX or not _THROTTLED.fullmatch(text):
            raise InvalidSetting(f"{name} must be * or a list of partition:broker, as in 0:1,1:2")
        return text
    try:
        value: float = kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InvalidSetting(f"{name} must be {what}, not {text!r}") from None
    if not row.least <= value <= row.most:  # also refuses NaN
        raise InvalidSetting(f"{name} must be from {row.least} to {row.most}, not {value}")
    return value
