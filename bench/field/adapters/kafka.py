"""Apache Kafka in KRaft mode: each process is both broker and controller."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.field.fetched import KAFKA_VERSION, kafka_jars
from bench.field.processes import NotStarted, ServerProcess, free_port
from bench.field.system import Durability, Missing, Protocol, Running, System, Variant, clustered
from bench.field.together import leader_of, started_together
from kafkaesque.testing.process import HOST

_CLUSTER_ID = "ZmllbGQtYmVuY2gtMDAwMQ"
_JVM = (
    # What bin/kafka-server-start.sh and bin/kafka-run-class.sh set.
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
_TOPIC_SETTINGS = {Durability.OS: (), Durability.ALWAYS: ("flush.messages=1",)}
_MAJORITY = ("min.insync.replicas=2",)
"""A majority of three; Kafka's own default is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of one server."""

    client: int
    controller: int


class Kafka(System):
    """Kafka's own broker, its jars fetched by name with Maven."""

    name = "kafka"
    title = "Apache Kafka"
    package = "openjdk-17-jre-headless and maven, and librdkafka-dev"

    def version(self) -> str:
        """Return the version that is fetched."""
        if shutil.which("java") is None:
            raise Missing("there is no java on PATH", self.package)
        kafka_jars()
        return KAFKA_VERSION

    def variants(self) -> Sequence[Variant]:
        """Return the default and one with a sync per acknowledgement, alone and as a cluster."""
        alone = [
            Variant(
                name=f"kafka-{durability.value}",
                title=f"Apache Kafka, {durability.value}",
                durability=durability,
                is_default=durability is Durability.OS,
                settings=", ".join(settings) or "no flush settings",
                topic_settings=settings,
                protocol=Protocol.KAFKA,
                driver="kafka",
                reader="fetch",
            )
            for durability, settings in _TOPIC_SETTINGS.items()
        ]
        return [*alone, *(clustered(variant, _MAJORITY) for variant in alone)]

    def prepare(self, variant: Variant, folder: Path) -> None:
        """Format the storage, which Kafka requires before its first start."""
        all_ports = [
            Ports(client=free_port(), controller=free_port()) for _ in range(variant.brokers)
        ]
        for node in range(1, variant.brokers + 1):
            file = folder / f"server-{node}.properties"
            file.write_text(server_properties(node, all_ports, folder))
            form = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(file)]
            done = subprocess.run([*java(()), *form], capture_output=True, text=True, cwd=folder)
            if done.returncode:
                raise NotStarted(" / ".join((done.stdout + done.stderr).splitlines()[-3:]))

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start the servers."""
        files = sorted(folder.glob("server-*.properties"))
        return started_together(
            {port_of(file.read_text()): [*java(_JVM), "kafka.Kafka", str(file)] for file in files},
            folder,
        )

    def leader(self, running: Running, topic: str) -> ServerProcess:
        """Ask the brokers, as any client does."""
        return leader_of(running, topic)


def java(options: Sequence[str]) -> list[str]:
    """Return the start of a command line that runs a class of Kafka."""
    return ["java", *options, "-cp", f"{kafka_jars()}{os.sep}*"]


def server_properties(node: int, all_ports: Sequence[Ports], folder: Path) -> str:
    """Return Kafka's example for one node, with replication factors possible in its cluster.

    The nodes are numbered from 1.
    """
    ports = all_ports[node - 1]
    voters = (f"{n}@{HOST}:{one.controller}" for n, one in enumerate(all_ports, start=1))
    replicas = str(len(all_ports))
    majority = str(len(all_ports) // 2 + 1)
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": ",".join(voters),
        "listeners": f"PLAINTEXT://{HOST}:{ports.client},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.client}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(folder / f"data-{node}"),
        "num.network.threads": "3",
        "num.io.threads": "8",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": majority,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": majority,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def port_of(properties: str) -> int:
    """Return the port for clients."""
    rows = dict(row.split("=", 1) for row in properties.splitlines())
    return int(rows["advertised.listeners"].rpartition(":")[2])
