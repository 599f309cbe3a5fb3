"""The leaders of partitions as one broker sees them, over a separate connection."""

from kafkaesque.client.address import Address
from kafkaesque.client.blocking_connection import BlockingConnection
from kafkaesque.client.config import ClientConfig
from kafkaesque.clock import SystemClock
from kafkaesque.errors import KafkaesqueError
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

ASK_MS_MAX = 2_000
_NOBODY = -1


def leaders_of(host: str, port: int, topic: str) -> dict[int, NodeId | None]:
    """Return the leader of each partition of a topic; empty if the broker does not answer."""
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False
    )
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + ASK_MS_MAX
    try:
        asked = BlockingConnection.open(
            Address(host=host, port=port), ClientConfig(), clock, deadline_ms
        )
        try:
            answer = asked.call(request, MetadataResponse, deadline_ms)
        finally:
            asked.close()
    except KafkaesqueError:
        return {}  # it is paused, or was just killed
    return {
        one.partition_index: None if one.leader_id == _NOBODY else one.leader_id
        for found in answer.topics
        for one in found.partitions
    }
