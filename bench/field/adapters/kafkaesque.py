"""Kafkaesque itself, as `kafkaesque serve` runs it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.field.fetched import CACHE
from bench.field.processes import ServerProcess, free_port
from bench.field.system import Durability, Protocol, Running, System, Variant, clustered
from bench.field.together import leader_of, started_together
from kafkaesque import __version__
from kafkaesque.testing.process import HOST


class Kafkaesque(System):
    """This project."""

    name = "kafkaesque"
    title = "Kafkaesque"
    package = "this repository"

    def version(self) -> str:
        """Return our own version."""
        return __version__

    def variants(self) -> Sequence[Variant]:
        """Return both flush policies, with one broker and with several; always is the default."""
        alone = [
            Variant(
                name=f"kafkaesque-{durability.value}",
                title=f"Kafkaesque, {durability.value}",
                durability=durability,
                is_default=durability is Durability.ALWAYS,
                settings=f"flush.policy={durability.value}",
                topic_settings=(f"flush.policy={durability.value}",),
                protocol=Protocol.KAFKA,
                driver="kafka",
                reader="fetch",
            )
            for durability in (Durability.OS, Durability.ALWAYS)
        ]
        return [*alone, *map(clustered, alone)]

    def prepare(self, variant: Variant, folder: Path) -> None:
        """Let Python compile the modules, as when a package is installed."""
        subprocess.run([*called(), "serve", "--help"], check=True, capture_output=True, cwd=folder)

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start the brokers; all but the first one join it."""
        ports = [free_port() for _ in range(variant.brokers)]
        first = f"{HOST}:{ports[0]}"
        return started_together(
            {port: command(port, folder, join="" if port == ports[0] else first) for port in ports},
            folder,
        )

    def leader(self, running: Running, topic: str) -> ServerProcess:
        """Ask the brokers, as any client does."""
        return leader_of(running, topic)


def called() -> list[str]:
    """Return the start of a command line.

    As in an installed package, Python keeps compiled modules, even if the environment forbids it.
    """
    compiled = ("env", "PYTHONDONTWRITEBYTECODE=", f"PYTHONPYCACHEPREFIX={CACHE / 'compiled'}")
    return [*compiled, sys.executable, "-m", "kafkaesque"]


def command(port: int, folder: Path, join: str = "") -> list[str]:
    """Return the command line of a broker.

    It sets the address, because otherwise clients of a cluster see two names for one broker, the
    one they connected to and `localhost` from the other brokers, and reconnect each time.
    """
    serve = [*called(), "serve", "--listen", HOST, "--port", str(port)]
    data = folder / (f"data-{port}" if join else "data")
    return [*serve, "--data", str(data), *(["--join", join] if join else [])]
