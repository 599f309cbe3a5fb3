"""Applies a topic's settings to a batch before it is appended.

For most topics the header is enough. Records are decoded only where a setting needs it: on a
compacted topic, where every record needs a key, and where compression.type differs from the
producer's codec. That takes far longer, and is bounded by `RecordLimits`.
"""

from collections.abc import Iterable, Mapping

from kafkaesque.broker.partition.partition_errors import BatchTooLarge, RecordsRefused, TimeRefused
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.errors import MalformedBatch, OversizedBatch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.read import RECORD_BYTES_MIN, iterate_records, read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    BatchView,
    Codec,
    stamp_append_time,
)
from kafkaesque.topic_settings import (
    DEFAULTS,
    CleanupPolicy,
    CompressionType,
    TopicSettings,
)

_CODECS: Mapping[CompressionType, Codec] = {
    CompressionType.UNCOMPRESSED: Codec.NONE,
    CompressionType.GZIP: Codec.GZIP,
    CompressionType.SNAPPY: Codec.SNAPPY,
    CompressionType.LZ4: Codec.LZ4,
    CompressionType.ZSTD: Codec.ZSTD,
}
UNBOUNDED_MS = DEFAULTS.message_timestamp_after_max_ms
_TIME_SPREAD_MAX = (1 << 63) - 1
_NOT_FOR_PRODUCERS = CONTROL_BIT | LOG_APPEND_TIME_BIT


class Admission:
    """The settings of one topic that affect an append."""

    def __init__(self, settings: TopicSettings, limits: RecordLimits | None = None) -> None:
        self._bytes_max = settings.max_message_bytes
        self._codec = _CODECS.get(settings.compression_type)
        self._level = _level(settings)
        self._needs_keys = settings.cleanup_policy is not CleanupPolicy.DELETE
        self._limits = RecordLimits() if limits is None else limits
        self.is_append_time = settings.is_append_time
        """Whether batches get the broker's time."""
        self._before_ms = settings.message_timestamp_before_max_ms
        self._after_ms = settings.message_timestamp_after_max_ms
        is_timed = min(self._before_ms, self._after_ms) < UNBOUNDED_MS
        self._checks_times = is_timed and not self.is_append_time
        self.is_plain = not (
            self._codec is not None or self._needs_keys or self.is_append_time or self._checks_times
        )
        """Whether a batch in writable memory is appended unchanged."""

    def check(self, batches: memoryview) -> BatchView:
        """Return the one batch that a producer sent; raises BatchError and the topic's errors.

        Kafka also takes only one per partition: of several, one could be a duplicate and the next
        new, yet the response has only one offset.
        """
        view = BatchView(batches)
        size = len(view.data)
        if size != len(batches):
            raise MalformedBatch("a producer sends one batch at a time to a partition")
        if size > self._bytes_max:
            raise BatchTooLarge(f"a batch of {size} bytes, the topic takes {self._bytes_max}")
        if view.attributes & _NOT_FOR_PRODUCERS:
            _refuse_traits(view)
        view.check()
        count, records_max = view.record_count, self._limits.records_max
        # A count without the bytes to back it would waste offsets.
        if count > records_max:
            raise OversizedBatch(f"a batch may hold {records_max} records, this has {count}")
        records_bytes = size - HEADER_BYTES
        if count * RECORD_BYTES_MIN > records_bytes and not view.attributes & CODEC_MASK:
            raise MalformedBatch(f"{count} records cannot lie in {records_bytes} bytes")
        return view

    def prepare(self, view: BatchView, now_ms: int) -> BatchView:
        """Return the batch as it will be appended, in writable memory.

        A batch that already lies in writable memory is taken over and changed in place.
        """
        if self._checks_times:
            self._check_times(view, now_ms)
        must_repack = self._codec is not None and self._codec != view.codec
        if must_repack:
            records = read_records(view, self._limits)
            if self._needs_keys:
                _check_keys(records)
            view = self._repacked(view, records)
        elif self._needs_keys:
            _check_keys(iterate_records(view, self._limits))
        if view.data.readonly:
            view = BatchView(bytearray(view.data))
        if self.is_append_time:
            stamp_append_time(view.data, now_ms)
            view = BatchView(view.data)
        return view

    def _check_times(self, view: BatchView, now_ms: int) -> None:
        """Raise TimeRefused for timestamps out of bounds; a batch without timestamps passes."""
        if view.max_timestamp_ms < 0:
            return
        behind_ms, ahead_ms = now_ms - view.base_timestamp_ms, view.max_timestamp_ms - now_ms
        if behind_ms > self._before_ms:
            raise TimeRefused(f"a batch {behind_ms} ms old, the topic takes {self._before_ms}")
        if ahead_ms > self._after_ms:
            raise TimeRefused(f"a batch {ahead_ms} ms ahead, the topic takes {self._after_ms}")

    def _repacked(self, view: BatchView, records: list[Record]) -> BatchView:
        assert self._codec is not None
        producer = ProducerStamp(
            producer_id=view.producer_id,
            producer_epoch=view.producer_epoch,
            base_sequence=view.base_sequence,
        )
        times = [record.timestamp_ms for record in records]
        if max(times) - min(times) > _TIME_SPREAD_MAX:
            raise MalformedBatch("the records' timestamps are too far apart for one batch")
        traits = BatchTraits(is_transactional=view.is_transactional)
        packed = BatchView(
            build_batch(
                records, codec=self._codec, producer=producer, traits=traits, level=self._level
            )
        )
        if packed.size > self._bytes_max:
            raise BatchTooLarge(
                f"a batch of {packed.size} bytes after packing, the topic takes {self._bytes_max}"
            )
        return packed


def _level(settings: TopicSettings) -> int | None:
    """Return the level of a topic's codec; None if it has no levels."""
    match settings.compression_type:
        case CompressionType.GZIP:
            return settings.compression_gzip_level
        case CompressionType.LZ4:
            return settings.compression_lz4_level
        case CompressionType.ZSTD:
            return settings.compression_zstd_level
        case _:
            return None


def _refuse_traits(view: BatchView) -> None:
    if view.is_control:
        raise MalformedBatch("only a broker writes control batches")
    raise MalformedBatch("only a broker marks timestamps as its own")


def _check_keys(records: Iterable[Record]) -> None:
    without = [place for place, record in enumerate(records) if record.key is None]
    if without:
        raise RecordsRefused("a compacted topic takes no record without a key", without)
