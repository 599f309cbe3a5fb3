"""`python -m tests.fuzz --seconds 600`: attacks a broker for a while and prints the findings."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.attack import Attack
from tests.fuzz.victim import Victim

FINDINGS_MAX = 20


def main() -> int:
    """Attack until the time is over; the exit code says whether anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=os.getpid())
    options = parser.parse_args()
    _say(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder, Victim(Path(folder)) as victim:
        attack = Attack(victim, options.seed)
        attack.prepare()
        until = time.monotonic() + options.seconds
        shown = 0
        while time.monotonic() < until and len(attack.tally.findings) < FINDINGS_MAX:
            attack.batch()
            tally = attack.tally
            for finding in tally.findings[shown:]:
                _say(f"FOUND after {tally.executions}: {finding}")
            shown = len(tally.findings)
            if tally.checks % 20 == 0:
                _say(
                    f"{tally.executions} executions, {tally.answers} answers, "
                    f"{len(tally.apis)} APIs and versions, RSS {tally.rss_last >> 20} MiB "
                    f"(first {tally.rss_first >> 20}), slowest witness "
                    f"{attack.slowest_seconds:.3f} s, {shown} findings"
                )
            if not victim.is_alive:
                break
    _say(f"{tally.executions} executions, {len(tally.findings)} findings")
    return 1 if tally.findings else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
