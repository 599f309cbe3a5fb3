"""Which segments have outlived what their topic promises to keep."""

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
    """Whether records bear the time of the broker that led when they came."""


def expired(
    infos: Iterable[SegmentInfo],
    *,
    size_bytes: int,
    ages: Ages | None,
    rules: RetentionRules,
    below: Offset,
) -> Offset | None:
    """Return the log's new start: the first offset, oldest segment first, that is to be kept.

    Whole segments go, never the active one, and none that reaches beyond `below`, the committed
    offset. By time a segment goes when its newest record has expired, and none without `ages`. By
    size it goes while the log, of `size_bytes` in all, would still hold the bytes promised. None if
    nothing goes. No more of `infos` is asked for than that takes.
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
    """Tell whether the newest record of a segment has expired; nothing has without `ages`."""
    if ages is None or rules.retention_ms is None:
        return False
    return age_ms(info, ages, is_append_time=rules.is_append_time) > rules.retention_ms


def age_ms(info: SegmentInfo, ages: Ages, *, is_append_time: bool = False) -> int:
    """Return how long ago the newest record of a segment was written, as far as can be told.

    A timestamp from the future would keep the segment, and all behind it, for as long as its
    producer likes; a missing one would keep it not at all. Then the file's own time counts. So it
    does if a broker set the timestamp when the record was appended, perhaps one whose clock was
    behind: a replica has the record no longer than its file.
    """
    newest_ms = info.max_timestamp_ms
    is_plausible = 0 <= newest_ms <= ages.now_ms
    if is_plausible and is_append_time and info.modified_ms <= ages.now_ms:
        newest_ms = max(newest_ms, info.modified_ms)
    return ages.of(newest_ms if is_plausible else info.modified_ms)
