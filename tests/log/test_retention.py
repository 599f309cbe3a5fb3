"""Retention decides from the segments' metadata, and changes nothing itself."""

import pytest

from kafkaesque.ages import Ages
from kafkaesque.log.retention import RetentionRules, expired
from kafkaesque.log.segment import SegmentInfo
from kafkaesque.types import Offset

NOW = 1_000_000
HOUR = RetentionRules(retention_ms=3600)


def segments(*newest_ms: int, modified_ms: int = NOW, size: int = 100) -> list[SegmentInfo]:
    """Segments of ten offsets each; the last one is active."""
    return [
        SegmentInfo(
            base=10 * number,
            end=10 * number + 10,
            bytes=size,
            max_timestamp_ms=time,
            modified_ms=modified_ms,
            is_active=number == len(newest_ms) - 1,
        )
        for number, time in enumerate(newest_ms)
    ]


def start_after(infos: list[SegmentInfo], rules: RetentionRules, below: Offset = 1000) -> Offset:
    size_bytes = sum(info.bytes for info in infos)
    start = expired(infos, size_bytes=size_bytes, ages=Ages(now_ms=NOW), rules=rules, below=below)
    return infos[0].base if start is None else start


def test_without_rules_everything_is_kept() -> None:
    assert start_after(segments(1, 2, 3), RetentionRules()) == 0


@pytest.mark.requirement("LOG-2")
def test_segments_whose_newest_record_has_expired_are_deleted() -> None:
    assert start_after(segments(NOW - 9999, NOW - 3601, NOW - 3600, NOW), HOUR) == 20


def test_a_young_segment_keeps_all_later_ones() -> None:
    assert start_after(segments(NOW - 1, NOW - 9999, NOW), HOUR) == 0


def test_the_active_segment_stays_however_old() -> None:
    assert start_after(segments(1, 2), HOUR) == 10
    assert start_after(segments(1), HOUR) == 0


def test_uncommitted_segments_are_not_deleted() -> None:
    assert start_after(segments(1, 1, 1, 1), HOUR, below=19) == 10
    assert start_after(segments(1, 1, 1, 1), HOUR, below=20) == 20


@pytest.mark.requirement("LOG-2")
def test_the_log_keeps_at_least_the_retention_bytes() -> None:
    infos = segments(NOW, NOW, NOW, NOW)
    wanted = {400: 0, 301: 0, 300: 10, 299: 10, 200: 20, 100: 30, 0: 30}
    for promised, start in wanted.items():
        assert start_after(infos, RetentionRules(retention_bytes=promised)) == start


def test_either_rule_is_enough_to_delete_a_segment() -> None:
    infos = segments(1, NOW, NOW, NOW)
    assert start_after(infos, RetentionRules(retention_ms=3600, retention_bytes=200)) == 20


def test_a_timestamp_from_the_future_does_not_block_retention() -> None:
    infos = segments(2**62, 1, NOW, modified_ms=NOW - 3601)
    assert start_after(infos, HOUR) == 20
    assert start_after(segments(2**62, 1, NOW, modified_ms=NOW), HOUR) == 0


def test_records_without_timestamps_are_judged_by_when_they_were_written() -> None:
    assert start_after(segments(-1, NOW, modified_ms=NOW), HOUR) == 0
    assert start_after(segments(-1, NOW, modified_ms=NOW - 3601), HOUR) == 10
