"""Apache Kafka for tests, where Java and its jars are available."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.field.adapters.kafka import Kafka
from bench.field.system import Missing
from kafkaesque.testing.process import HOST

_MORE_SETTINGS = """\
num.partitions=2
group.initial.rebalance.delay.ms=0
"""
"""Configured like our own brokers in these tests, and without a delay of the first rebalance."""


@contextmanager
def apache_kafka() -> Iterator[str]:
    """Start one broker and yield its address; skips the test where Kafka is not available."""
    system = Kafka()
    try:
        system.version()
    except Missing as missing:
        pytest.skip(f"Apache Kafka cannot be had: {missing}")
    variant = next(one for one in system.variants() if one.is_default)
    with tempfile.TemporaryDirectory(prefix="kafkaesque-apache-") as name:
        folder = Path(name)
        system.prepare(variant, folder)
        with (folder / "server-1.properties").open("a") as file:
            file.write(_MORE_SETTINGS)
        running = system.start(variant, folder)
        try:
            yield f"{HOST}:{running.port}"
        finally:
            for process in running.processes:
                process.stop()
