"""Asks a cluster from inside its network: `python -m tests.chaos.asking BOOTSTRAP WORD`."""

# mypy: disable-error-code="no-untyped-call"

import json
import sys
import time

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.chaos.job import TOPIC

SECONDS_MAX = 20
_LOOK_SECONDS = 0.1


def create(admin: AdminClient, partitions: str, replicas: str, *settings: str) -> None:
    """Make the topic of the run."""
    config = dict(setting.split("=") for setting in settings)
    topic = NewTopic(TOPIC, int(partitions), int(replicas), config=config)
    admin.create_topics([topic])[TOPIC].result(SECONDS_MAX)


def leaders(admin: AdminClient) -> dict[int, int]:
    """Return who leads each partition; waits while one has no leader."""
    late = time.monotonic() + SECONDS_MAX
    while time.monotonic() < late:
        partitions = admin.list_topics(TOPIC, SECONDS_MAX).topics[TOPIC].partitions
        found = {number: one.leader for number, one in partitions.items()}
        if found and all(leader > 0 for leader in found.values()):
            return found
        time.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"a partition has no leader: {found}")


def main() -> None:
    """Do what the arguments say; print the answer."""
    bootstrap, word, *rest = sys.argv[1:]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if word == "create":
        create(admin, *rest)
    else:
        sys.stdout.write(json.dumps(leaders(admin)))


if __name__ == "__main__":
    main()
