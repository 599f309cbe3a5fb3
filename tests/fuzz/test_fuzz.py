"""A short attack on a real broker: it lives, logs no errors of ours, and stays small."""

from pathlib import Path

from tests.fuzz.attack import ROWS, RSS_GROWTH_BYTES_MAX, Attack
from tests.fuzz.victim import Victim

BATCHES = 8
"""About 5,000 inputs in as many seconds; `python -m tests.fuzz --seconds 600` takes its time."""


def test_a_broker_survives_nasty_requests_changed_bytes_and_garbage(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim:
        attack = Attack(victim, seed=1)
        attack.prepare()
        for _ in range(BATCHES):
            attack.batch()
        tally = attack.tally
        assert tally.findings == []
        assert tally.rss_last - tally.rss_first < RSS_GROWTH_BYTES_MAX
        assert {name for name, _ in tally.apis} == {row.api.name for row in ROWS}
        assert tally.answers > tally.executions / 3
