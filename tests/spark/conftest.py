"""One Spark session and one broker for all tests; without the extra these files are skipped."""

import importlib.util
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kafkaesque.client.admin import Admin
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import Codec
from kafkaesque.testing import Broker

HAS_SPARK = importlib.util.find_spec("pyspark") is not None

collect_ignore = (
    []
    if HAS_SPARK
    else [
        "cluster_program.py",
        "committed.py",
        "connect_program.py",
        "killing.py",
        "official_program.py",
        "pipeline_runs.py",
        "plain_program.py",
        "test_activity.py",
        "test_archive.py",
        "test_clusters.py",
        "test_connect.py",
        "test_decode.py",
        "test_encode.py",
        "test_killing.py",
        "test_official.py",
        "test_once.py",
        "test_once_sink.py",
        "test_pipelines.py",
        "test_register.py",
        "test_sink.py",
        "test_source.py",
        "test_stream.py",
        "test_tutorial.py",
        "test_warming.py",
    ]
)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from kafkaesque.spark.session import session

    running = session(
        "kafkaesque-tests",
        master="local[2,3]",
        settings={"spark.sql.shuffle.partitions": "1", "spark.ui.showConsoleProgress": "false"},
    )
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()


class Topics:
    """The broker of a test, with helpers for writing and reading."""

    def __init__(self, broker: Broker) -> None:
        self.bootstrap = broker.bootstrap
        self.admin = Admin(broker.bootstrap)

    def create(self, name: str, partitions: int = 1) -> str:
        self.admin.topics.create(name, partitions=partitions)
        return name

    def put(
        self,
        topic: str,
        partition: int,
        records: Sequence[Record],
        codec: Codec = Codec.NONE,
    ) -> None:
        """Append one batch; the offsets of its records are counted from its first."""
        self.admin.batches.produce(topic, partition, build_batch(records, codec=codec))

    def count(self, topic: str, partition: int, start: int, end: int, now_ms: int) -> None:
        """Append one record for each number, with the number as value."""
        records = [
            Record(offset=n - start, timestamp_ms=now_ms + n, key=None, value=b"%d" % n)
            for n in range(start, end)
        ]
        self.put(topic, partition, records)

    def options(self, **options: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap, **options}


@pytest.fixture(scope="session")
def topics() -> Iterator[Topics]:
    with Broker() as broker:
        found = Topics(broker)
        yield found
        found.admin.close()


def offsets(**partitions: dict[int, int]) -> str:
    """Return offsets in the form of the options."""
    return json.dumps(partitions)
