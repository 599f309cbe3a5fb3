"""RabbitMQ with classic queues, quorum queues and streams."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.field.processes import ServerProcess, free_port
from bench.field.system import Durability, Missing, Protocol, Running, System, Variant
from kafkaesque.testing.process import HOST

_LIBRARY = Path("/usr/lib/rabbitmq")
_SERVER = _LIBRARY / "bin" / "rabbitmq-server"
"""The script behind the one on PATH, which insists on its own user."""


class RabbitMq(System):
    """The server from the package `rabbitmq-server`, without its service."""

    name = "rabbitmq"
    title = "RabbitMQ"
    package = "rabbitmq-server, and librabbitmq-dev"

    def version(self) -> str:
        """Read it from the installed folder."""
        if not _SERVER.exists() or shutil.which("epmd") is None:
            raise Missing("rabbitmq-server is not installed", self.package)
        folders = [path.name for path in (_LIBRARY / "lib").glob("rabbitmq_server-*")]
        found = re.search(r"-([\d.]+)$", max(folders, default=""))
        return found[1] if found else "unknown"

    def variants(self) -> Sequence[Variant]:
        """Return all three; each has only one kind of durability."""
        return [
            Variant(
                name="rabbitmq-stream-os",
                title="RabbitMQ stream, os",
                durability=Durability.OS,
                is_default=True,
                settings="stream, own protocol, confirms",
                kind="stream",
                driver="stream",
                reader="stream",
                window=10_000,
            ),
            Variant(
                name="rabbitmq-classic-always",
                title="RabbitMQ classic, always",
                durability=Durability.ALWAYS,
                is_default=True,
                settings="classic queue, durable, persistent messages, confirms",
                kind="classic",
                protocol=Protocol.QUEUE,
                driver="rabbitmq",
            ),
            Variant(
                name="rabbitmq-quorum-always",
                title="RabbitMQ quorum, always",
                durability=Durability.ALWAYS,
                is_default=True,
                settings="quorum queue of one member, confirms",
                kind="quorum",
                protocol=Protocol.QUEUE,
                driver="rabbitmq",
            ),
        ]

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start our own port mapper and server beside any on the machine."""
        ports = {name: free_port() for name in ("amqp", "stream", "mapper", "distribution")}
        (folder / "enabled_plugins").write_text("[rabbitmq_stream].\n")
        (folder / "rabbitmq.conf").write_text(config(ports))
        mapper_folder = folder / "mapper"
        mapper_folder.mkdir()
        mapper = ServerProcess(
            ["epmd", "-port", str(ports["mapper"]), "-address", HOST], mapper_folder
        )
        mapper.await_port(ports["mapper"])
        try:
            server = ServerProcess([str(_SERVER)], folder, environment(ports, folder))
            server.await_port(ports["amqp"])
            server.await_port(ports["stream"])
        except BaseException:  # also on SIGTERM
            mapper.stop()
            raise
        port = ports["stream" if variant.kind == "stream" else "amqp"]
        return Running(port=port, processes=(mapper, server))


def config(ports: Mapping[str, int]) -> str:
    """Return the configuration file."""
    rows = (
        f"listeners.tcp.1 = {HOST}:{ports['amqp']}",
        f"stream.listeners.tcp.1 = {HOST}:{ports['stream']}",
        "log.console.level = warning",
    )
    return "\n".join(rows) + "\n"


def environment(ports: Mapping[str, int], folder: Path) -> dict[str, str]:
    """Return its folders and addresses."""
    return {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(ports["mapper"]),
        "ERL_EPMD_ADDRESS": HOST,
        "RABBITMQ_NODENAME": "field@localhost",
        "RABBITMQ_DIST_PORT": str(ports["distribution"]),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "no-such-file"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }
