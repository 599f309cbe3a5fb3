"""How fast do batches become Arrow columns on one core?

Records of 118 B in batches of 500, and of 1 KB in batches of 64, without codec; 64 batches become
one Arrow batch. aiokafka's compiled reader walks the same batches in the same run and reads every
field into Python objects. The best of several rounds counts. Prints two JSON lines; needs the
extra `spark`.
"""

import json
import random
import time
from collections.abc import Callable

from aiokafka.record.default_records import DefaultRecordBatch

from kafkaesque.record.build import build_batch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.spark.decode import Decoder, Target, chunks

BATCHES = 64
ROUNDS = 30
NOW_MS = 1_900_000_000_000


def a_topic(records: int, value_bytes: int) -> list[BatchView]:
    """Return batches of random values."""
    chance = random.Random(1)
    return [
        BatchView(
            bytes(
                build_batch(
                    [
                        Record(
                            offset=number * records + n,
                            timestamp_ms=NOW_MS + n,
                            key=b"k%07d" % n,
                            value=chance.randbytes(value_bytes),
                        )
                        for n in range(records)
                    ]
                )
            )
        )
        for number in range(BATCHES)
    ]


def ours(views: list[BatchView], decoder: Decoder) -> int:
    """Decode all, including checksums; return the number of rows."""
    return sum(decoder.decode(group).num_rows for group in chunks(views, RecordLimits()))


def theirs(views: list[bytes]) -> int:
    """Read all records and their fields, including checksums; return their number."""
    count = 0
    for data in views:
        batch = DefaultRecordBatch(data)
        assert batch.validate_crc()
        for record in batch:
            _ = (record.key, record.value, record.offset, record.timestamp, record.headers)
            count += 1
    return count


def best_seconds(work: Callable[[], int]) -> float:
    """Return the least CPU time of several rounds."""
    work()
    found = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def measure(figure: str, records: int, value_bytes: int) -> dict[str, object]:
    """Return one figure: rows for small records, bytes for large ones."""
    decoder = Decoder(Target(topic="t", partition=0, first=0, end=1 << 62))
    views = a_topic(records, value_bytes)
    plain = [bytes(view.data) for view in views]
    own, other = best_seconds(lambda: ours(views, decoder)), best_seconds(lambda: theirs(plain))
    by_rows = value_bytes < 1_000
    amount = BATCHES * records / 1e6 if by_rows else sum(view.size for view in views) / 1e9
    return {
        "figure": figure,
        "measured": round(amount / own, 2),
        "unit": "M rows/s" if by_rows else "GB/s",
        "ratio": round(other / own, 2),
        "aiokafka": round(amount / other, 2),
    }


def main() -> None:
    """Measure and print."""
    print(json.dumps(measure("spark-decode-118", records=500, value_bytes=100)))
    print(json.dumps(measure("spark-decode-1k", records=64, value_bytes=1_000)))


if __name__ == "__main__":
    main()
