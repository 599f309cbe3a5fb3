"""Loads what tasks need, once for all of them: `python -m kafkaesque.spark.worker_preload`.

The compiled loops are compiled on their first call, which takes seconds, and cached beside the
source. Running this after an installation saves that time in the first query; running it in the
process that Spark forks its workers from saves every worker the import and the loading.
"""

from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView


def warm() -> None:
    """Write and read a record, so that every loop is compiled; contacts no broker.

    Only what most queries do: some columns would make Arrow import pandas.
    """
    from kafkaesque.record.limits import RecordLimits
    from kafkaesque.spark import range_reader  # noqa: F401 - the imports of reading tasks
    from kafkaesque.spark.decode import COLUMNS, Decoder, Target, chunks
    from kafkaesque.spark.encode import encode, places_of_rows, rows_of

    record = Record(offset=0, timestamp_ms=0, key=b"k", value=b"v")
    target = Target(topic="t", partition=0, first=0, end=1, columns=COLUMNS)
    batch = BatchView(build_batch([record]))
    for group in chunks([batch], RecordLimits()):
        found = Decoder(target).decode(group).select(["key", "value"])
        rows = rows_of(found)
        for _, numbers in places_of_rows(found, rows, "t", {"t": 1}, 0):
            assert sum(one.count for one in encode(rows, numbers, 1, 0)) == 1, "one row, one record"


if __name__ == "__main__":
    warm()
