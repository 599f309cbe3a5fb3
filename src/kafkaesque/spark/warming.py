"""Loads what tasks need, once for all of them: `python -m kafkaesque.spark.warming`.

The compiled loops are compiled when they are first called, which takes seconds, and are kept beside
the source. Run after an installation, this spares the first query that; run in the process that
Spark forks its workers from, it spares every worker the import and the loading.
"""

from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView


def warm() -> None:
    """Read and write a record, so that every loop is there; talks to nobody.

    Only what most queries do: some columns would have Arrow import pandas.
    """
    from kafkaesque.config import RecordLimits
    from kafkaesque.spark import reading  # noqa: F401 - what tasks that read import
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
