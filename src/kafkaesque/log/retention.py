"""Finds the segments that retention no longer keeps."""

from collections.abc import Iterable

from msgspec import Struct

from kafkaesque.ages import Ages
from kafkaesque.log.segment import SegmentInfo
from kafkaesque.types import Offset


class RetentionRules(Struct, frozen=True, kw_only=True):
    """How long and how much to keep; None keeps everything."""

    retention_ms: int | None = None
    retention_bytes: int | None = None
    is_append_time: bool = False
    """Whether the leader sets the records' timestamps when it appends them."""


def expired(
    infos: Iterable[SegmentInfo],
    *,
    size_bytes: int,
    ages: Ages | None,
    rules: RetentionRules,
    below: Offset,
) -> Offset | None:
    """Return the log's new start: the first offset, oldest segment first, to keep.

    Only whole segments go, never the active one, and none that reaches beyond `below`, the
    committed offset. By time, a segment goes when its newest record has expired; none does without
    `ages`. By size, it goes while the log, of `size_bytes` in all, would still hold the promised
    bytes. None if nothing goes. Reads no more of `infos` than it needs.
    """
    start: Offset | None = None
    excess_bytes = -1 if rules.retention_bytes is None else size_bytes - rules.retention_bytes
    for info in infos:
        if info.is_active or info.end > below:
            break
        if not is_too_old(info, ages, rules) and excess_bytes < info.bytes:
            break
        excess_bytes -= info.bytes
        start = info.end
    return start


def is_too_old(info: SegmentInfo, ages: Ages | None, rules: RetentionRules) -> bool:
    """Return whether the newest record of a segment has expired; never without `ages`."""
    if ages is None or rules.retention_ms is None:
        return False
    return age_ms(info, ages, is_append_time=rules.is_append_time) > rules.retention_ms


def age_ms(info: SegmentInfo, ages: Ages, *, is_append_time: bool = False) -> int:
    """Return the estimated age of a segment's newest record.

    A timestamp in the future would keep the segment, and all after it, for an arbitrary time; a
    missing one would not keep it at all. Then the file's own time counts. It also counts if a
    broker, whose clock may have been behind, set the timestamp on append: a replica has had the
    record no longer than its file.
    """
    newest_ms = info.max_timestamp_ms
    is_plausible = 0 <= newest_ms <= ages.now_ms
    if is_plausible and is_append_time and info.modified_ms <= ages.now_ms:
        newest_ms = max(newest_ms, info.modified_ms)
    return ages.of(newest_ms if is_plausible else info.modified_ms)
