"""Applies a topic's settings to the logs of its partitions."""

from dataclasses import replace
from zlib import crc32

from kafkaesque.config import LogConfig
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.log.retention import RetentionRules
from kafkaesque.topic_settings import (
    DEFAULTS,
    UNLIMITED,
    CleanupPolicy,
    FlushPolicy,
    TopicSettings,
)

INDEX_INTERVAL_BYTES_MAX = 1 << 20
"""The most bytes that a read scans before it finds the first batch it wants."""


def internal(settings: TopicSettings, config: LogConfig) -> TopicSettings:
    """Return the settings of a log that feeds a machine, whatever was set for it.

    It is always synced. Nothing of it is deleted by age or size, nor compacted: whatever a snapshot
    of the machine covers is dropped (`broker/machine_hosting/machine_saver.py`), in small segments.
    """
    return replace(
        settings,
        cleanup_policy=CleanupPolicy.DELETE,
        retention_ms=UNLIMITED,
        retention_bytes=UNLIMITED,
        flush_policy=FlushPolicy.ALWAYS,
        segment_bytes=min(settings.segment_bytes, config.internal_segment_bytes_max),
    )


def configure_log(log: PartitionLog, settings: TopicSettings) -> None:
    """Apply the settings to a log from its next append on."""
    config = log.segments.config
    if (
        settings.index_interval_bytes != DEFAULTS.index_interval_bytes
    ):  # otherwise the broker's own applies
        interval_bytes = min(settings.index_interval_bytes, INDEX_INTERVAL_BYTES_MAX)
        config = replace(config, index_interval_bytes=interval_bytes)
    config = replace(
        config,
        segment_bytes_max=settings.segment_bytes,
        segment_age_ms_max=_segment_ms(settings, log.segments.folder),
    )
    log.configure(
        config,
        policy=settings.flush_policy,
        flush_ms=settings.flush_ms,
        flush_records=settings.flush_messages,
    )


def _segment_ms(settings: TopicSettings, folder: str) -> int:
    """Return the maximum age of a segment: the active one cannot be compacted.

    The jitter depends only on the partition, so that a restart does not change it.
    """
    early_ms = min(settings.segment_jitter_ms, settings.segment_ms)
    segment_ms = settings.segment_ms - (crc32(folder.encode()) % early_ms if early_ms else 0)
    if settings.cleanup_policy is CleanupPolicy.DELETE:
        return segment_ms
    return min(segment_ms, settings.max_compaction_lag_ms)


def retention_rules(settings: TopicSettings) -> RetentionRules:
    """Return how long and how much a topic keeps."""
    return RetentionRules(
        retention_ms=_limit(settings.retention_ms),
        retention_bytes=_limit(settings.retention_bytes),
        is_append_time=settings.is_append_time,
    )


def _limit(value: int) -> int | None:
    return None if value == UNLIMITED else value
