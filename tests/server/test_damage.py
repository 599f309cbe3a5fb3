"""What a broker reports about a damaged partition: to consumers, tools and Prometheus."""

import pytest

from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.clock import SystemClock
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.handlers import describe_log_dirs
from kafkaesque.server.http.metrics import METRICS
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.server_config import LimitsConfig
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.server.memory_broker import MemoryBroker, at_once


def told_of_folders(broker: MemoryBroker) -> DescribeLogDirsResponse:
    request = DescribeLogDirsRequest(topics=None)
    return at_once(describe_log_dirs.handle(request, 4, broker.session))


def damaged_replicas(broker: MemoryBroker) -> list[float]:
    (metric,) = (one for one in METRICS if one.name == "kafkaesque_replicas_damaged")
    samples = metric.read(Edge(broker.broker, LimitsConfig(), SystemClock(), None, Turn()))
    return [value for _, value in samples]


@pytest.mark.complains("damage_found partition=*: the batch has a wrong checksum")
def test_damage_is_reported_as_a_metric_and_as_a_failed_folder() -> None:
    broker = MemoryBroker()
    broker.create("orders", 2)
    for value in (b"a", b"b", b"c"):
        broker.append("orders", 1, value)
    assert len(told_of_folders(broker).results) == 1
    assert damaged_replicas(broker) == [0]
    partition = broker.partition("orders", 1)
    segments = partition.replica.log.segments
    path = next(n for n in segments.disk.list(segments.folder) if n.endswith(".log"))
    file = segments.disk.open(f"{segments.folder}/{path}")
    file.write(65, b"!!!")
    file.close()
    with pytest.raises(PartitionOffline):
        partition.read(0, 1 << 10)
    whole, failed = told_of_folders(broker).results
    assert whole.error_code == ErrorCode.NONE
    assert failed.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in failed.topics] == [
        ("orders", [1])
    ]
    assert damaged_replicas(broker) == [1]
