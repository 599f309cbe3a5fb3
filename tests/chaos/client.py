"""One client process: `python -m tests.chaos.client JOB`, until SIGTERM."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.chaos import confluent_clients, python_clients, share_clients, transactional_clients
from tests.chaos.history import Recorder
from tests.chaos.job import Job, Stop

ROLES: Mapping[str, Callable[[Job, Recorder, Stop], None]] = {
    "confluent-producer": confluent_clients.produce,
    "confluent-consumer": confluent_clients.consume_assigned,
    "confluent-slow": confluent_clients.consume_slowly,
    "confluent-member": confluent_clients.consume_in_group,
    "confluent-places": confluent_clients.read_places,
    "confluent-final": confluent_clients.read_all,
    "transactor": transactional_clients.transact,
    "transactions-final": transactional_clients.read_transactions,
    "filler": share_clients.fill,
    "sharer": share_clients.share,
    "queue-final": share_clients.empty,
    "aiokafka-producer": python_clients.produce,
    "aiokafka-consumer": python_clients.consume,
    "kafka-python-final": python_clients.read_all,
}


def main() -> None:
    """Do one job."""
    job = Job.from_json(sys.argv[1])
    stop = Stop()
    with Path(job.history).open("a") as file:
        ROLES[job.role](job, Recorder(file), stop)


if __name__ == "__main__":
    main()
