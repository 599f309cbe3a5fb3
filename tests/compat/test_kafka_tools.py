"""Kafka's own command-line tools run successfully against three of our brokers."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.field.fetched import KAFKA_TOOLS, kafka_jars
from bench.field.system import Missing
from kafkaesque.testing import Cluster

pytestmark = [pytest.mark.compat, pytest.mark.long]

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
CONFIGS = "kafka.admin.ConfigCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RATE = "leader.replication.throttled.rate"
SECONDS_MAX = 120


@pytest.fixture(scope="module")
def jars() -> str:
    """The class path of the tools, which Maven fetches."""
    try:
        return os.pathsep.join(
            f"{folder}{os.sep}*" for folder in (kafka_jars(KAFKA_TOOLS), kafka_jars())
        )
    except Missing as missing:
        pytest.skip(f"Kafka's tools cannot be had: {missing}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        yield running


def tool(jars: str, cluster: Cluster, name: str, *words: str) -> str:
    """Run a tool to its end; return its output. It must not fail."""
    at = ("--bootstrap-server", cluster.bootstrap)
    done = subprocess.run(
        ["java", "-cp", jars, name, *at, *words],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Exception" not in said
    assert not re.search(r"(?m)^Error", said), said
    return said


def test_a_reassignment_is_throttled_and_its_end_removes_the_throttles(
    jars: str, cluster: Cluster, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic("orders", num_partitions=1, replica_assignment=[[1]])
    admin.create_topics([topic])["orders"].result(SECONDS_MAX)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for _ in range(200):
        producer.produce("orders", b"x" * 10_000)
    assert producer.flush(SECONDS_MAX) == 0
    wanted = {"topic": "orders", "partition": 0, "replicas": [2, 3, 1]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    file = ("--reassignment-json-file", str(plan))
    said = tool(jars, cluster, REASSIGN, *file, "--execute", "--throttle", "50000000")
    assert "Successfully started partition reassignment" in said
    ends = time.monotonic() + SECONDS_MAX
    while "is completed" not in (said := tool(jars, cluster, REASSIGN, *file, "--verify")):
        assert time.monotonic() < ends, said
    assert "Clearing broker-level throttles" in said
    assert "Clearing topic-level throttles" in said
    found = admin.list_topics("orders", SECONDS_MAX).topics["orders"].partitions[0].replicas
    assert sorted(found) == [1, 2, 3]
    left = tool(
        jars, cluster, CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "1"
    )
    assert RATE not in left


def test_settings_of_a_broker_and_levels_of_its_loggers_are_shown_and_changed(
    jars: str, cluster: Cluster
) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "2")
    tool(jars, cluster, CONFIGS, "--alter", *broker, "--add-config", "log.retention.ms=123456789")
    said = tool(jars, cluster, CONFIGS, "--describe", *broker)
    assert "log.retention.ms=123456789" in said
    tool(jars, cluster, CONFIGS, "--alter", *broker, "--delete-config", "log.retention.ms")
    assert "123456789" not in tool(jars, cluster, CONFIGS, "--describe", *broker)
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "2")
    said = tool(jars, cluster, CONFIGS, "--describe", *loggers)
    name = next(iter(re.findall(r"(?m)^\s*(kafkaesque\S*)=", said)))
    tool(jars, cluster, CONFIGS, "--alter", *loggers, "--add-config", f"{name}=DEBUG")
    assert f"{name}=DEBUG" in tool(jars, cluster, CONFIGS, "--describe", *loggers)


def test_hanging_transactions_can_be_searched_on_any_broker(jars: str, cluster: Cluster) -> None:
    for node in cluster.nodes:
        tool(jars, cluster, TRANSACTIONS, "find-hanging", "--broker-id", str(node))
    tool(jars, cluster, GROUPS, "--list")
