"""Partitions by their topics' names."""

from kafkaesque.server.answers.named_places import named_places
from tests.server.memory_broker import MemoryBroker


def test_partitions_are_grouped_by_topic_and_in_order() -> None:
    memory = MemoryBroker()
    orders, gone = memory.create("orders", 3), b"?" * 16
    places = [(orders, 2), (gone, 0), (orders, 0)]
    assert named_places(places, memory.session) == [(orders, "orders", (0, 2))]
