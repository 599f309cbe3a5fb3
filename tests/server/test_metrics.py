"""What a broker of a cluster reports to Prometheus about its partitions."""

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.clock import SystemClock
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.http.metrics import METRICS
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.server_config import LimitsConfig
from kafkaesque.sim.broker_run import is_of_one_mind
from tests.sim.test_broker_world import broker_of, create, ready_world, wait


def test_a_high_watermark_has_the_number_of_its_partition() -> None:
    world = ready_world()
    assert create(world, 1, "orders", 3, replication=1) is None
    wait(world, lambda: is_of_one_mind(world))
    (metric,) = (one for one in METRICS if one.name == "kafkaesque_high_watermark")
    told: list[str] = []
    for node in world.nodes:
        broker = broker_of(world, node)
        slots = broker.topics.slots("orders")
        here = [str(place) for place, slot in enumerate(slots) if isinstance(slot, Partition)]
        samples = metric.read(Edge(broker, LimitsConfig(), SystemClock(), None, Turn()))
        found = [partition for (topic, partition), _ in samples if topic == "orders"]
        assert found == here
        told += found
    assert sorted(told) == ["0", "1", "2"]
