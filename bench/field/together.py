"""Several servers that form one cluster, and their leader."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient

from bench.field.processes import Failed, ServerProcess
from bench.field.system import Running
from kafkaesque.testing.process import HOST

ASK_SECONDS_MAX = 10.0
_LOOK_EVERY_S = 0.05


def started_together(commands: Mapping[int, Sequence[str]], folder: Path) -> Running:
    """Start one server per port, all at once; return when all accept connections.

    If it raises NotStarted, all of them are stopped.
    """
    brokers: dict[int, ServerProcess] = {}
    try:
        for port, command in commands.items():
            home = folder / f"server-{port}"
            home.mkdir()
            brokers[port] = ServerProcess(command, home)
        for port, process in brokers.items():
            process.await_port(port)
    except BaseException:  # also on SIGTERM: no one else stops them yet
        for process in brokers.values():
            process.stop()
        raise
    return Running(port=next(iter(brokers)), processes=tuple(brokers.values()), brokers=brokers)


def leader_of(running: Running, topic: str) -> ServerProcess:
    """Return the leader of a topic's first partition, according to Kafka's protocol.

    A new topic, or one whose leader has just crashed, has none for a moment.
    """
    admin = AdminClient({"bootstrap.servers": f"{HOST}:{running.port}"})
    ends = time.monotonic() + ASK_SECONDS_MAX
    while time.monotonic() < ends:
        known = admin.list_topics(topic, timeout=ASK_SECONDS_MAX)
        partitions = known.topics[topic].partitions
        leader = known.brokers.get(partitions[0].leader) if partitions else None
        if leader is not None:
            return running.brokers[leader.port]
        time.sleep(_LOOK_EVERY_S)
    raise Failed(f"{topic} has no leader")
