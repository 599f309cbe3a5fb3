"""What does an idle cluster cost, and does that grow with its partitions?

Three brokers, replication factor 3, with a given number of partitions in total. When they are at
rest, processor time, memory and traffic between the brokers are measured over some seconds.
"""

import argparse
import json
import re
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from bench.cluster_traffic import BROKERS, brokers, create
from bench.serving import Served
from kafkaesque.testing.process import HOST, BrokerProcess

ASKED = 1_000
PARTITIONS = (10, 100, ASKED, 5_000)
REST_S = 20.0
GIVEN_BACK_PER_S = 50
"""New partitions are led by the brokers that were first, which hand over a few at a time."""
MEASURE_S = 20.0
_SENT = re.compile(r"^kafkaesque_link_sent_(bytes|messages)_total\{[^}]*\} (\S+)$", re.MULTILINE)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="*", default=PARTITIONS)
    options = parser.parse_args()
    for partitions in options.partitions:
        with tempfile.TemporaryDirectory() as root, brokers(Path(root), BROKERS) as running:
            create(running, "idle", partitions, BROKERS, {})
            time.sleep(REST_S + partitions / GIVEN_BACK_PER_S)
            report(running, partitions)


def report(running: Sequence[BrokerProcess], partitions: int) -> None:
    """Read all counters twice, and print the difference per second and broker."""
    served = [Served(pid=broker.pid, port=broker.port) for broker in running]
    before, sent_before = sum(one.cpu_seconds() for one in served), sent(running)
    began = time.perf_counter()
    time.sleep(MEASURE_S)
    seconds = time.perf_counter() - began
    after, sent_after = sum(one.cpu_seconds() for one in served), sent(running)
    share = 100 * (after - before) / seconds / len(served)
    memory = max(one.resident_bytes() for one in served) / 1e6
    traffic = {
        f"{name}_per_s": round((sent_after[name] - sent_before[name]) / seconds / len(served), 1)
        for name in sent_after
    }
    for figure, value, unit in (
        ("cluster-idle-cpu", round(share, 2), "% of a core per broker"),
        ("cluster-idle-memory", round(memory, 1), "MB per broker"),
    ):
        kind = "figure" if partitions == ASKED else "raw"
        line = {kind: f"{figure}-{partitions}", "measured": value, "unit": unit, **traffic}
        print(json.dumps(line), flush=True)


def sent(running: Sequence[BrokerProcess]) -> dict[str, float]:
    """Return the bytes that all brokers have sent over their links so far."""
    found = {"bytes": 0.0, "messages": 0.0}
    for broker in running:
        with urllib.request.urlopen(f"http://{HOST}:{broker.port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        for name, value in _SENT.findall(text):
            found[name] += float(value)
    return found


if __name__ == "__main__":
    main()
