"""What does it cost a broker to keep who holds which records of a share group?

The state of deliveries on one partition, without log and network: 500 records taken and accepted
as a range, 500 taken and accepted one by one, in order, and records taken and accepted one at a
time. A plain dict with one entry for each record does the same in the same run. The best of several
rounds counts. Prints one JSON line per figure.
"""

import json
import time
from collections.abc import Callable

from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_values import Ack, AckBatch, ShareLimits

RECORDS = 200_000
TAKEN = 500
ROUNDS = 5
LOCK_MS = 30_000
ACCEPT = (Ack.ACCEPT,)


class Plain:
    """One entry for each record: its holder, its deadline and its delivery count."""

    def __init__(self) -> None:
        self.start = self.next = 0
        self.entries: dict[int, tuple[str, int, int] | None] = {}

    def take(self, member: str, records: int, now_ms: int) -> range:
        """Let a member hold the next records."""
        taken = range(self.next, self.next + records)
        for offset in taken:
            self.entries[offset] = (member, now_ms + LOCK_MS, 1)
        self.next += records
        return taken

    def accept(self, member: str, first: int, last: int, now_ms: int) -> None:
        """Take records as done, all or none."""
        for offset in range(first, last + 1):
            entry = self.entries[offset]
            if entry is None or entry[0] != member or entry[1] <= now_ms:
                raise ValueError(offset)
        for offset in range(first, last + 1):
            self.entries[offset] = None
        while self.start < self.next and self.entries[self.start] is None:
            del self.entries[self.start]
            self.start += 1


def ours(taken: int, acked: int) -> Callable[[], None]:
    """Return a run over all records."""

    def run() -> None:
        state = SharePartition((bytes(16), 0), "g", 0, ShareLimits(), 0)
        for at in range(0, RECORDS, taken):
            state.take("a", [(at, at + taken - 1)], taken, at)
            for first in range(at, at + taken, acked):
                state.settle("a", [AckBatch(first, first + acked - 1, ACCEPT)], at)
        assert state.start == RECORDS

    return run


def in_one_request() -> None:
    """Accept each record on its own, but 500 of them in one request."""
    state = SharePartition((bytes(16), 0), "g", 0, ShareLimits(), 0)
    for at in range(0, RECORDS, TAKEN):
        state.take("a", [(at, at + TAKEN - 1)], TAKEN, at)
        state.settle("a", [AckBatch(n, n, ACCEPT) for n in range(at, at + TAKEN)], at)
    assert state.start == RECORDS


def plain(taken: int, acked: int) -> Callable[[], None]:
    """Return the same run with a plain dict."""

    def run() -> None:
        state = Plain()
        for at in range(0, RECORDS, taken):
            state.take("a", taken, at)
            for first in range(at, at + taken, acked):
                state.accept("a", first, first + acked - 1, at)
        assert state.start == RECORDS

    return run


def best_us(runs: list[Callable[[], None]]) -> list[float]:
    """Return the microseconds per record of each run, measured in turns."""
    rounds = []
    for _ in range(ROUNDS):
        row = []
        for run in runs:
            began = time.process_time()
            run()
            row.append((time.process_time() - began) / RECORDS * 1e6)
        rounds.append(row)
    return [min(column) for column in zip(*rounds, strict=True)]


def main() -> None:
    """Measure and print."""
    figures = {
        "share-acks-ranges": [ours(TAKEN, TAKEN), plain(TAKEN, TAKEN)],
        "share-acks-singly": [ours(TAKEN, 1), plain(TAKEN, 1)],
        "share-acks-in-one-request": [in_one_request, plain(TAKEN, 1)],
        "share-acks-one-at-a-time": [ours(1, 1), plain(1, 1)],
    }
    for figure, runs in figures.items():
        measured, reference = best_us(runs)
        line = {"figure": figure, "measured": round(measured, 3), "unit": "us per record"}
        line |= {"ratio": round(measured / reference, 3), "dict": round(reference, 3)}
        print(json.dumps(line))


if __name__ == "__main__":
    main()
