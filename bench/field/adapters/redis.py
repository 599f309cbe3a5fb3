"""Redis Streams."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.field.processes import ServerProcess, free_port
from bench.field.system import Durability, Missing, Running, System, Variant
from kafkaesque.testing.process import HOST

_SETTINGS = {
    Durability.MEMORY: ("save 3600 1 300 100 60 10000", "appendonly no"),
    Durability.OS: ('save ""', "appendonly yes", "appendfsync everysec"),
    Durability.ALWAYS: ('save ""', "appendonly yes", "appendfsync always"),
}
"""Redis's own default may lose the last minute; the others write every command to a log."""


class Redis(System):
    """Redis from the package `redis-server`."""

    name = "redis"
    title = "Redis Streams"
    package = "redis-server, libhiredis-dev"

    def version(self) -> str:
        """Ask the server."""
        if shutil.which("redis-server") is None:
            raise Missing("redis-server is not on PATH", self.package)
        done = subprocess.run(["redis-server", "--version"], capture_output=True, text=True)
        found = re.search(r"v=(\S+)", done.stdout)
        return found[1] if found else "unknown"

    def variants(self) -> Sequence[Variant]:
        """Return the default, and variants with its log of commands."""
        return [
            Variant(
                name=f"redis-{durability.value}",
                title=f"Redis Streams, {durability.value}",
                durability=durability,
                is_default=durability is Durability.MEMORY,
                settings=", ".join(settings),
                driver="redis",
            )
            for durability, settings in _SETTINGS.items()
        ]

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start one server with a configuration file."""
        port = free_port()
        file = folder / "redis.conf"
        file.write_text(config(variant.durability, port, folder))
        process = ServerProcess(["redis-server", str(file)], folder)
        process.await_port(port)
        return Running(port=port, processes=(process,))


def config(durability: Durability, port: int, folder: Path) -> str:
    """Return the configuration file."""
    fixed = (f"bind {HOST}", f"port {port}", f"dir {folder}", "daemonize no")
    return "\n".join([*fixed, *_SETTINGS[durability]]) + "\n"
