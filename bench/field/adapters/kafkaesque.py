"""Kafkaesque itself, as `kafkaesque serve` runs it."""

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.field.processes import ServerProcess, free_port
from bench.field.system import Durability, Protocol, Running, System, Variant
from kafkaesque import __version__


class Kafkaesque(System):
    """This project."""

    name = "kafkaesque"
    title = "Kafkaesque"
    package = "this repository"

    def version(self) -> str:
        """Return our own version."""
        return __version__

    def variants(self) -> Sequence[Variant]:
        """Return both flush policies; always is the default."""
        return [
            Variant(
                name=f"kafkaesque-{durability.value}",
                title=f"Kafkaesque, {durability.value}",
                durability=durability,
                is_default=durability is Durability.ALWAYS,
                settings=f"flush.policy={durability.value}",
                topic_settings=(f"flush.policy={durability.value}",),
                protocol=Protocol.KAFKA,
                driver="kafka",
            )
            for durability in (Durability.OS, Durability.ALWAYS)
        ]

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start one broker."""
        port = free_port()
        process = ServerProcess(command(port, folder), folder)
        process.await_port(port)
        return Running(port=port, processes=(process,))


def command(port: int, folder: Path) -> list[str]:
    """Return how it is called."""
    serve = [sys.executable, "-m", "kafkaesque", "serve"]
    return [*serve, "--port", str(port), "--data", str(folder / "data")]
