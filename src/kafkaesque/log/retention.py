"""Which segments have outlived what their topic promises to keep."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafkaesque.log.segment import SegmentInfo
from kafkaesque.types import Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """How long and how much to keep; None keeps everything."""

    retention_ms: int | None = None
    retention_bytes: int | None = None


def expired(
    infos: Sequence[SegmentInfo], *, now_ms: int, rules: RetentionRules, below: Offset
) -> Offset:
    """Return the log's new start: the first offset, oldest segment first, that is to be kept.

    Whole segments go, never the active one, and none that reaches beyond `below`, the committed
    offset. By time a segment goes when its newest record has expired. By size it goes while the
    log without it would still hold the bytes promised.
    """
    start = infos[0].base
    excess_bytes = _excess_bytes(infos, rules)
    for info in infos:
        if info.is_active or info.end > below:
            break
        if not _is_too_old(info, now_ms, rules) and excess_bytes < info.bytes:
            break
        excess_bytes -= info.bytes
        start = info.end
    return start


def _is_too_old(info: SegmentInfo, now_ms: int, rules: RetentionRules) -> bool:
    if rules.retention_ms is None:
        return False
    newest_ms = info.max_timestamp_ms
    # A timestamp from the future would keep the segment, and all behind it, for as long as its
    # producer likes; a missing one would keep it not at all.
    if newest_ms > now_ms or newest_ms < 0:
        newest_ms = info.modified_ms
    return now_ms - newest_ms > rules.retention_ms


def _excess_bytes(infos: Sequence[SegmentInfo], rules: RetentionRules) -> int:
    if rules.retention_bytes is None:
        return -1
    return sum(info.bytes for info in infos) - rules.retention_bytes
