"""Kafka's own command-line tools run successfully against three of our brokers."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, ShareConsumer
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
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SHARE_CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SHARE_PERFORMANCE = "org.apache.kafka.tools.ShareConsumerPerformance"
SHARE_VERIFIABLE = "org.apache.kafka.tools.VerifiableShareConsumer"
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


def run(jars: str, cluster: Cluster, name: str, *words: str) -> tuple[int, str]:
    """Run a tool to its end; return its exit code and its output."""
    at = ("--bootstrap-server", cluster.bootstrap)
    done = subprocess.run(
        ["java", "-cp", jars, name, *at, *words],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def tool(jars: str, cluster: Cluster, name: str, *words: str) -> str:
    """Run a tool to its end; return what it says. It must not fail."""
    code, said = run(jars, cluster, name, *words)
    assert code == 0, said
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


# ── share groups ─────────────────────────────────────────────────────────────────────────────


def fill(cluster: Cluster, topic: str, records: int) -> None:
    """Create a topic of three partitions with this many records in each."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(SECONDS_MAX)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(3 * records):
        producer.produce(topic, f"{topic} {number}".encode(), partition=number % 3)
    assert producer.flush(SECONDS_MAX) == 0


def read_from_the_beginning(jars: str, cluster: Cluster, group: str) -> None:
    """Let a share group begin with the oldest records."""
    named = ("--entity-type", "groups", "--entity-name", group)
    setting = "share.auto.offset.reset=earliest"
    tool(jars, cluster, CONFIGS, "--alter", *named, "--add-config", setting)
    assert setting in tool(jars, cluster, CONFIGS, "--describe", *named)


def standing(jars: str, cluster: Cluster, group: str) -> list[tuple[int, int, int]]:
    """Partition, start and lag of a share group, as the tool shows them."""
    said = tool(jars, cluster, SHARE_GROUPS, "--describe", "--offsets", "--group", group)
    rows = re.findall(rf"(?m)^{group}\s+\S+\s+(\d+)\s+(\S+)\s+(\S+)\s*$", said)
    return sorted((int(index), int(start), int(lag)) for index, start, lag in rows)


def test_share_consumers_settle_what_they_read(jars: str, cluster: Cluster) -> None:
    fill(cluster, "parcels", 100)
    read_from_the_beginning(jars, cluster, "carriers")
    limits = ("--max-messages", "300", "--timeout-ms", "30000")
    topic = ("--topic", "parcels")
    said = tool(jars, cluster, SHARE_CONSOLE, *topic, "--group", "carriers", *limits)
    assert sorted(re.findall(r"parcels (\d+)", said), key=int) == [str(n) for n in range(300)]
    assert standing(jars, cluster, "carriers") == [(0, 100, 0), (1, 100, 0), (2, 100, 0)]
    read_from_the_beginning(jars, cluster, "racers")
    racing = ("--group", "racers", "--num-records", "300")
    said = tool(jars, cluster, SHARE_PERFORMANCE, *topic, *racing)
    assert re.search(r"(?m), 300, \d+$", said), said
    assert sum(lag for _, _, lag in standing(jars, cluster, "racers")) == 0
    asked = ("--group-id", "auditors", "--max-messages", "300", "--acknowledgement-mode", "sync")
    reset = ("--offset-reset-strategy", "earliest")
    said = tool(jars, cluster, SHARE_VERIFIABLE, *topic, *asked, *reset)
    told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    for event in ("records_consumed", "offsets_acknowledged"):
        assert sum(one["count"] for one in told if one["name"] == event) == 300
    assert told[-1]["name"] == "shutdown_complete"


def test_a_share_group_is_listed_with_its_members(jars: str, cluster: Cluster) -> None:
    fill(cluster, "letters", 1)
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "clerks", "client.id": "ann"}
    member = ShareConsumer(settings)
    member.subscribe(["letters"])
    ends = time.monotonic() + SECONDS_MAX
    try:
        while "letters:" not in (said := members_of(jars, cluster, "clerks")):
            assert time.monotonic() < ends, said
            member.poll(1)
        assert "ann" in said
        assert "letters:0,1,2" in said
        assert re.search(r"clerks\s+Stable", tool(jars, cluster, SHARE_GROUPS, "--list", "--state"))
        said = tool(jars, cluster, SHARE_GROUPS, "--describe", "--state", "--group", "clerks")
        assert re.search(r"clerks\s.*\sStable\s+1", said)
        scope = ("--group", "clerks", "--topic", "letters")
        for words in (("--reset-offsets", "--to-earliest", "--execute"), ("--delete-offsets",)):
            _, said = run(jars, cluster, SHARE_GROUPS, *words, *scope)
            assert re.search("not empty|has members", said), said
        _, said = run(jars, cluster, SHARE_GROUPS, "--delete", "--group", "clerks")
        assert "EMPTY" in said.upper(), said
    finally:
        member.close()
    assert re.search(r"(?m)^clerks\s*$", tool(jars, cluster, SHARE_GROUPS, "--list"))


def members_of(jars: str, cluster: Cluster, group: str) -> str:
    return tool(
        jars, cluster, SHARE_GROUPS, "--describe", "--members", "--verbose", "--group", group
    )


def test_a_share_group_is_set_back_and_deleted(jars: str, cluster: Cluster) -> None:
    fill(cluster, "forms", 10)
    scope = ("--group", "scribes", "--topic", "forms")
    reset = ("--reset-offsets", *scope)
    tool(jars, cluster, SHARE_GROUPS, *reset, "--to-latest", "--execute")  # creates it
    assert standing(jars, cluster, "scribes") == [(0, 10, 0), (1, 10, 0), (2, 10, 0)]
    tool(jars, cluster, SHARE_GROUPS, *reset, "--to-earliest", "--dry-run")
    assert standing(jars, cluster, "scribes") == [(0, 10, 0), (1, 10, 0), (2, 10, 0)]
    tool(jars, cluster, SHARE_GROUPS, *reset, "--to-earliest", "--execute")
    assert standing(jars, cluster, "scribes") == [(0, 0, 10), (1, 0, 10), (2, 0, 10)]
    limits = ("--max-messages", "30", "--timeout-ms", "30000")
    said = tool(jars, cluster, SHARE_CONSOLE, *scope, *limits)
    assert len(re.findall(r"forms \d+", said)) == 30
    assert standing(jars, cluster, "scribes") == [(0, 10, 0), (1, 10, 0), (2, 10, 0)]
    assert "Successful" in tool(jars, cluster, SHARE_GROUPS, "--delete-offsets", *scope)
    assert standing(jars, cluster, "scribes") == []
    assert "successful" in tool(jars, cluster, SHARE_GROUPS, "--delete", "--group", "scribes")
    assert "scribes" not in tool(jars, cluster, SHARE_GROUPS, "--list")
