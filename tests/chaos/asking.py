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


def create(admin: AdminClient, partitions: int, replicas: int) -> None:
    """Make the topic of the run."""
    admin.create_topics([NewTopic(TOPIC, partitions, replicas)])[TOPIC].result(SECONDS_MAX)


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
    bootstrap, word, *numbers = sys.argv[1:]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if word == "create":
        create(admin, *map(int, numbers))
    else:
        sys.stdout.write(json.dumps(leaders(admin)))


if __name__ == "__main__":
    main()
