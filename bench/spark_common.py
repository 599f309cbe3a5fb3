"""Shared by the Spark benchmarks: a session, topics full of records, and memory."""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafkaesque.client.admin import Admin
from kafkaesque.clock import SystemClock
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.spark.session import session
from tools.connector_jars import jars

OURS = "kafkaesque"
OFFICIAL = "kafka"
PARTITIONS = 4
VALUE_BYTES = 100
RECORDS_PER_BATCH = 4_000
_KIB = 1024


def formats() -> list[str]:
    """Return the available connectors: ours, and Spark's own if its JARs exist."""
    return [OURS, *([OFFICIAL] if jars() else [])]


@contextmanager
def spark_session(name: str) -> Iterator[Any]:
    """Run Spark in this process with two cores."""
    settings = {"spark.ui.showConsoleProgress": "false", "spark.driver.memory": "2g"}
    if jars():
        settings["spark.jars"] = ",".join(str(path) for path in jars())
    spark = session(name, settings=settings)
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def fill(bootstrap: str, topic: str, rows: int, per_batch: int = RECORDS_PER_BATCH) -> None:
    """Create a topic and fill it with records of 118 B, spread over its partitions."""
    chance, now_ms = random.Random(1), SystemClock().now_ms()
    with Admin(bootstrap) as admin:
        settings = {"flush.policy": "os"}
        admin.topics.create(topic, partitions=PARTITIONS, settings=settings)
        batch = build_batch(
            [
                Record(
                    offset=n,
                    timestamp_ms=now_ms,
                    key=b"k%07d" % n,
                    value=chance.randbytes(VALUE_BYTES),
                )
                for n in range(per_batch)
            ]
        )
        for number in range(rows // per_batch):
            admin.batches.produce(topic, number % PARTITIONS, batch)


def seconds(work: Callable[[], object]) -> float:
    """Return the duration in seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def resident_bytes() -> int:
    """Return the memory of this process and its descendants: Spark's JVM and its workers."""
    parents, sizes = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue  # it has ended meanwhile
        pid = int(status.parent.name)
        parents[pid] = int(lines["PPid"])
        sizes[pid] = int(lines.get("VmRSS", "0 kB").split()[0]) * _KIB
    own = {os.getpid()}
    # Ends: each pass finds another process, or nothing.
    while found := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= found
    return sum(sizes.get(pid, 0) for pid in own)
