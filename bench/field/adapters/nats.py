"""NATS JetStream with streams in files."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.field.fetched import nats_server
from bench.field.processes import ServerProcess, free_port
from bench.field.system import Durability, Missing, Running, System, Variant
from kafkaesque.testing.process import HOST

_ALWAYS_SINCE = (2, 10)
"""From this version on a server can be told to sync before it acknowledges."""


class Nats(System):
    """The server from the package `nats-server`, or a newer one built with `go install`."""

    name = "nats"
    title = "NATS JetStream"
    package = "golang or nats-server, and libnats-dev"

    def version(self) -> str:
        """Ask the server."""
        done = subprocess.run([self._program(), "--version"], capture_output=True, text=True)
        found = re.search(r"\bv(\d\S*)", done.stdout + done.stderr)
        return found[1] if found else "unknown"

    def variants(self) -> Sequence[Variant]:
        """Return the default, and with a sync for each message where the server has that."""
        ways = {Durability.OS: "sync_interval: 2m"}
        if is_at_least(self.version(), _ALWAYS_SINCE):
            ways[Durability.ALWAYS] = "sync_interval: always"
        return [
            Variant(
                name=f"nats-{durability.value}",
                title=f"NATS JetStream, {durability.value}",
                durability=durability,
                is_default=durability is Durability.OS,
                settings=settings,
                driver="nats",
                window=4096,
            )
            for durability, settings in ways.items()
        ]

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start one server with a file of settings."""
        port = free_port()
        file = folder / "nats.conf"
        file.write_text(config(variant.durability, port, folder))
        process = ServerProcess([self._program(), "-c", str(file)], folder)
        process.await_port(port)
        return Running(port=port, processes=(process,))

    def _program(self) -> str:
        built = nats_server()
        found = shutil.which("nats-server") if built is None else str(built)
        if found is None:
            raise Missing("nats-server is not on PATH", self.package)
        return found


def is_at_least(version: str, wanted: tuple[int, int]) -> bool:
    """Tell whether a version is this one or a later one."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    return tuple(numbers) >= wanted


def config(durability: Durability, port: int, folder: Path) -> str:
    """Return the file of settings."""
    sync = "  sync_interval: always\n" if durability is Durability.ALWAYS else ""
    store = f'jetstream {{\n  store_dir: "{folder / "data"}"\n{sync}}}\n'
    return f'listen: "{HOST}:{port}"\n{store}'
