"""Several servers that are one cluster, and which of them leads."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient

from bench.field.processes import ServerProcess
from bench.field.system import Running
from kafkaesque.testing.process import HOST

ASK_SECONDS_MAX = 10.0


def started_together(commands: Mapping[int, Sequence[str]], folder: Path) -> Running:
    """Start one server for each port, all at once; return when all take connections.

    Raises NotStarted, and has ended all of them then.
    """
    brokers: dict[int, ServerProcess] = {}
    try:
        for port, command in commands.items():
            home = folder / f"server-{port}"
            home.mkdir()
            brokers[port] = ServerProcess(command, home)
        for port, process in brokers.items():
            process.await_port(port)
    except BaseException:  # also when we are told to end: nobody else knows of them yet
        for process in brokers.values():
            process.stop()
        raise
    return Running(port=next(iter(brokers)), processes=tuple(brokers.values()), brokers=brokers)


def leader_of(running: Running, topic: str) -> ServerProcess:
    """Return who leads the first partition of a topic, asked with Kafka's protocol."""
    admin = AdminClient({"bootstrap.servers": f"{HOST}:{running.port}"})
    known = admin.list_topics(topic, timeout=ASK_SECONDS_MAX)
    leader = known.topics[topic].partitions[0].leader
    return running.brokers[known.brokers[leader].port]
