"""Sends requests to a cluster from inside its network: `tests.chaos.asking BOOTSTRAP WORD`."""

# mypy: disable-error-code="no-untyped-call"

import json
import sys
import time
from collections.abc import Callable, Mapping

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from kafkaesque.client.admin import Admin
from kafkaesque.client.overview import look
from kafkaesque.errors import KafkaesqueError, OutcomeUnknown
from tests.chaos.job import DELIVERIES_MAX, LOCK_MS, SHARERS, TOPIC

SECONDS_MAX = 20
_LOOK_SECONDS = 0.1


def create(admin: AdminClient, topic: str, partitions: str, replicas: str, *settings: str) -> None:
    """Create a topic of the run."""
    config = dict(setting.split("=") for setting in settings)
    wanted = NewTopic(topic, int(partitions), int(replicas), config=config)
    admin.create_topics([wanted])[topic].result(SECONDS_MAX)


def share(admin: AdminClient) -> None:
    """Let the share group of the run start at the beginning, and give up nothing by chance."""
    settings = {
        "share.auto.offset.reset": "earliest",
        "share.delivery.count.limit": str(DELIVERIES_MAX),
        "share.record.lock.duration.ms": str(LOCK_MS),
    }
    entries = [
        ConfigEntry(name, text, incremental_operation=AlterConfigOpType.SET)
        for name, text in settings.items()
    ]
    group = ConfigResource(ResourceType.GROUP, SHARERS, incremental_configs=entries)
    admin.incremental_alter_configs([group])[group].result(SECONDS_MAX)


def leaders(admin: AdminClient, topic: str) -> dict[int, int]:
    """Return the leader of each partition; wait while one has none."""
    late = time.monotonic() + SECONDS_MAX
    while time.monotonic() < late:
        partitions = admin.list_topics(topic, SECONDS_MAX).topics[topic].partitions
        found = {number: one.leader for number, one in partitions.items()}
        if found and all(leader > 0 for leader in found.values()):
            return found
        time.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"a partition has no leader: {found}")


def held(bootstrap: str, node: str) -> list[str]:
    """Return the partitions that a broker hosts, will host, or is about to drop."""
    with Admin(bootstrap) as ours:
        return [f"{topic}-{index}" for topic, index in look(ours).held_by(int(node))]


def drain(bootstrap: str, node: str) -> None:
    """Drain a broker."""
    with Admin(bootstrap) as ours:
        _persist(lambda: ours.brokers.drain(int(node)), OutcomeUnknown)


def remove(bootstrap: str, node: str) -> None:
    """Remove a broker that hosts nothing; retry while it still votes."""
    with Admin(bootstrap) as ours:
        _persist(lambda: ours.brokers.remove(int(node)), KafkaesqueError)


def move(bootstrap: str, partition: str, *nodes: str) -> None:
    """Start moving a partition to these brokers."""
    place, targets = (TOPIC, int(partition)), [int(node) for node in nodes]
    with Admin(bootstrap) as ours:
        _persist(lambda: ours.brokers.move({place: targets}), OutcomeUnknown)


def _persist(ask: Callable[[], object], problem: type[KafkaesqueError]) -> None:
    """Retry until it succeeds: all requests here are idempotent, and brokers are dying."""
    late = time.monotonic() + SECONDS_MAX
    while True:
        try:
            ask()
        except problem:
            if time.monotonic() > late:
                raise
            time.sleep(_LOOK_SECONDS)
        else:
            return


OURS: Mapping[str, Callable[..., object]] = {
    "held": held,
    "drain": drain,
    "remove": remove,
    "move": move,
}
"""Requests for our own client: other clients do not support them."""


def main() -> None:
    """Do what the arguments say; print the answer."""
    bootstrap, word, *rest = sys.argv[1:]
    if word in OURS:
        sys.stdout.write(json.dumps(OURS[word](bootstrap, *rest)))
        return
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if word == "create":
        create(admin, *rest)
    elif word == "share":
        share(admin)
    else:
        sys.stdout.write(json.dumps(leaders(admin, *rest)))


if __name__ == "__main__":
    main()
