"""Apache Kafka in KRaft mode: one process that is broker and controller."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.field.fetched import KAFKA_VERSION, kafka_jars
from bench.field.processes import NotStarted, ServerProcess, free_port
from bench.field.system import Durability, Missing, Protocol, Running, System, Variant
from kafkaesque.testing.process import HOST

_CLUSTER_ID = "ZmllbGQtYmVuY2gtMDAwMQ"
_JVM = (
    # What bin/kafka-server-start.sh and bin/kafka-run-class.sh set.
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
_TOPIC_SETTINGS = {Durability.OS: (), Durability.ALWAYS: ("flush.messages=1",)}


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
        """Return the default, and with a sync before each acknowledgement."""
        return [
            Variant(
                name=f"kafka-{durability.value}",
                title=f"Apache Kafka, {durability.value}",
                durability=durability,
                is_default=durability is Durability.OS,
                settings=", ".join(settings) or "no flush settings",
                topic_settings=settings,
                protocol=Protocol.KAFKA,
                driver="kafka",
            )
            for durability, settings in _TOPIC_SETTINGS.items()
        ]

    def prepare(self, variant: Variant, folder: Path) -> None:
        """Format the storage, as Kafka asks for before its first start."""
        ports = (free_port(), free_port())
        file = folder / "server.properties"
        file.write_text(server_properties(ports, folder))
        form = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(file)]
        done = subprocess.run([*java(()), *form], capture_output=True, text=True, cwd=folder)
        if done.returncode:
            raise NotStarted(" / ".join((done.stdout + done.stderr).splitlines()[-3:]))

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start one server."""
        file = folder / "server.properties"
        port = port_of(file.read_text())
        process = ServerProcess([*java(_JVM), "kafka.Kafka", str(file)], folder)
        process.await_port(port)
        return Running(port=port, processes=(process,))


def java(options: Sequence[str]) -> list[str]:
    """Return the beginning of a command line that calls a class of Kafka."""
    return ["java", *options, "-cp", f"{kafka_jars()}{os.sep}*"]


def server_properties(ports: tuple[int, int], folder: Path) -> str:
    """Return Kafka's example for one node, with replication factors that one node can have.

    The ports are those for clients and for the controller.
    """
    client, controller = ports
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{client},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{client}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(folder / "data"),
        "num.network.threads": "3",
        "num.io.threads": "8",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def port_of(properties: str) -> int:
    """Return the port for clients."""
    rows = dict(row.split("=", 1) for row in properties.splitlines())
    return int(rows["advertised.listeners"].rpartition(":")[2])
