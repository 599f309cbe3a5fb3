"""NATS JetStream with streams in files."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from bench.field.fetched import nats_server
from bench.field.processes import ServerProcess, free_port
from bench.field.system import Durability, Missing, Running, System, Variant, clustered
from bench.field.together import ASK_SECONDS_MAX, started_together
from kafkaesque.testing.process import HOST

_ALWAYS_SINCE = (2, 10)
"""From this version a server can sync before it acknowledges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of one server: for clients, for its peers, and for monitoring."""

    client: int
    route: int
    look: int


class Nats(System):
    """The server from the package `nats-server`, or a newer one built with `go install`."""

    name = "nats"
    title = "NATS JetStream"
    package = "golang or nats-server, and libnats-dev"

    def __init__(self) -> None:
        self._look_port = 0

    def version(self) -> str:
        """Ask the server."""
        done = subprocess.run([self._program(), "--version"], capture_output=True, text=True)
        found = re.search(r"\bv(\d\S*)", done.stdout + done.stderr)
        return found[1] if found else "unknown"

    def variants(self) -> Sequence[Variant]:
        """Return the default, and one with a sync per message if the server supports it."""
        ways = {Durability.OS: "sync_interval: 2m"}
        if is_at_least(self.version(), _ALWAYS_SINCE):
            ways[Durability.ALWAYS] = "sync_interval: always"
        alone = [
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
        return [*alone, *map(clustered, alone)]

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start the servers, each with a configuration file."""
        all_ports = [
            Ports(client=free_port(), route=free_port(), look=free_port())
            for _ in range(variant.brokers)
        ]
        self._look_port = all_ports[0].look
        commands = {}
        for ports in all_ports:
            file = folder / f"nats-{ports.client}.conf"
            file.write_text(config(variant.durability, ports, all_ports, folder))
            commands[ports.client] = [self._program(), "-c", str(file)]
        return started_together(commands, folder)

    def leader(self, running: Running, topic: str) -> ServerProcess:
        """Read it from the server's monitoring page."""
        address = f"http://{HOST}:{self._look_port}/jsz?streams=true&config=true"
        with urlopen(address, timeout=ASK_SECONDS_MAX) as answer:
            return running.brokers[leader_in(json.load(answer), topic)]

    def _program(self) -> str:
        built = nats_server()
        found = shutil.which("nats-server") if built is None else str(built)
        if found is None:
            raise Missing("nats-server is not on PATH", self.package)
        return found


def is_at_least(version: str, wanted: tuple[int, int]) -> bool:
    """Return whether a version is this one or later."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    return tuple(numbers) >= wanted


def leader_in(state: Mapping[str, Any], stream: str) -> int:
    """Return the port of the server that leads a stream; servers are named after their ports."""
    (leader,) = {
        one["cluster"]["leader"]
        for account in state["account_details"]
        for one in account["stream_detail"]
        if one["name"] == stream
    }
    return int(leader)


def config(durability: Durability, ports: Ports, all_ports: Sequence[Ports], folder: Path) -> str:
    """Return the configuration file of one of the servers."""
    sync = "  sync_interval: always\n" if durability is Durability.ALWAYS else ""
    store = f'jetstream {{\n  store_dir: "{folder / f"data-{ports.client}"}"\n{sync}}}\n'
    listen = f'listen: "{HOST}:{ports.client}"\n'
    if len(all_ports) == 1:
        return listen + store
    routes = ", ".join(f'"nats://{HOST}:{one.route}"' for one in all_ports)
    return (
        f'{listen}{store}server_name: "{ports.client}"\nhttp: "{HOST}:{ports.look}"\n'
        f'cluster {{\n  name: field\n  listen: "{HOST}:{ports.route}"\n  routes: [{routes}]\n}}\n'
    )
