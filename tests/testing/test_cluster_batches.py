"""Batches of a query over a cluster of real processes: decided once, whichever broker is killed."""

from collections.abc import Iterator

import pytest

from kafkaesque.broker.coordination.coordinators import partition_of
from kafkaesque.broker.coordination.transactions import STATE_TOPIC
from kafkaesque.client.admin import Admin
from kafkaesque.client.prepared import PreparedTransaction
from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.record.view import Codec
from kafkaesque.testing import Cluster
from kafkaesque.transactional_ids import BatchTransactionId, hashed_part, query_key
from kafkaesque.types import NodeId
from tests.client.batches import committed, encoded
from tests.complaints import WITHOUT_LEADERS

SINK, TOPIC = "s", "out"
PARTITIONS = 3
TASKS = 4

pytestmark = [pytest.mark.chaos, pytest.mark.long, WITHOUT_LEADERS]


@pytest.fixture(scope="module", name="cluster")
def _cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        with Admin(running.bootstrap) as admin:
            admin.topics.create(TOPIC, partitions=PARTITIONS, replicas=3)
        yield running


def coordinator(cluster: Cluster, query: str) -> NodeId:
    key = hashed_part(query_key(query))
    return cluster.leader(STATE_TOPIC, partition_of(key, TransactionConfig().state_partitions))


def task(cluster: Cluster, query: str, batch: int, driver: int, number: int) -> PreparedTransaction:
    name = str(BatchTransactionId(query, SINK, batch, driver, number, 0))
    with Admin(cluster.bootstrap) as admin:
        producer = admin.transactional_producer(name, Codec.NONE, timeout_ms=60_000)
        value = f"{query}.{batch}.{number}".encode()
        producer.send({(TOPIC, index): encoded(value) for index in range(PARTITIONS)})
        return producer.prepare("the driver")


def seen(cluster: Cluster, query: str) -> list[bytes]:
    values = [
        value for index in range(PARTITIONS) for value in committed(cluster.bootstrap, TOPIC, index)
    ]
    return sorted(value for value in values if value.startswith(query.encode()))


def wanted(query: str, batches: int) -> list[bytes]:
    return sorted(
        f"{query}.{batch}.{number}".encode()
        for batch in range(batches)
        for number in range(TASKS)
        for _ in range(PARTITIONS)
    )


def test_a_batch_is_decided_though_its_coordinator_was_killed_after_the_prepare(
    cluster: Cluster,
) -> None:
    query = "killed-between"
    with Admin(cluster.bootstrap) as admin:
        driver = admin.batches.register(query, SINK)
        for batch in range(2):
            prepared = [task(cluster, query, batch, driver, number) for number in range(TASKS)]
            victim = coordinator(cluster, query)
            cluster.kill(victim)
            decided = admin.batches.decide(query, SINK, batch, driver, prepared)
            assert len(decided.transactional_ids) == TASKS
            assert not decided.was_decided_before
            cluster.restart(victim)
    assert seen(cluster, query) == wanted(query, 2)


def test_a_driver_that_starts_after_the_coordinator_was_killed_finds_the_decision(
    cluster: Cluster,
) -> None:
    query = "killed-after"
    with Admin(cluster.bootstrap) as admin:
        driver = admin.batches.register(query, SINK)
        prepared = [task(cluster, query, 0, driver, number) for number in range(TASKS)]
        admin.batches.decide(query, SINK, 0, driver, prepared)
        task(cluster, query, 1, driver, 0)
        victim = coordinator(cluster, query)
        cluster.kill(victim)
    with Admin(cluster.bootstrap) as admin:
        driver = admin.batches.register(query, SINK)
        again = admin.batches.decide(query, SINK, 0, driver, [])
        assert again.was_decided_before
        assert again.transactional_ids == tuple(one.transactional_id for one in prepared)
        cluster.restart(victim)
    assert seen(cluster, query) == wanted(query, 1), "the rest of batch 1 is aborted"
