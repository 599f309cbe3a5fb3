"""The interface of the adapters: what they report of a system, and what they start."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from bench.field.processes import ServerProcess

BROKERS = 3
"""Brokers in a cluster; each message is on all of them."""


class Durability(Enum):
    """The state of a message when it is acknowledged."""

    MEMORY = "memory"
    """It is in the server's memory."""
    OS = "os"
    """It was handed to the operating system; a power cut may lose it."""
    ALWAYS = "always"
    """It was synced to the disk."""


class Protocol(Enum):
    """What a system can do."""

    KAFKA = "kafka"
    """Batches, compression, partitions, any number of readers."""
    STREAM = "stream"
    """Any number of readers, each from any position."""
    QUEUE = "queue"
    """A message goes to one reader and is gone."""


class Missing(Exception):
    """A system cannot be measured here; holds the reason and the package that would provide it."""

    def __init__(self, reason: str, package: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.package = package


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way of running a system."""

    name: str
    """For example `kafka-os`."""
    title: str
    durability: Durability
    is_default: bool
    """Whether these are its default settings."""
    settings: str
    """The settings that matter here, in its own terms."""
    kind: str = ""
    """The type of queue, if a system has several."""
    topic_settings: tuple[str, ...] = ()
    """Topic settings for the driver: NAME=VALUE."""
    protocol: Protocol = Protocol.STREAM
    driver: str = ""
    reader: str = ""
    """The driver that reads messages in place in its receive buffer, if there is one."""
    window: int = 1024
    """Messages waiting for acknowledgement, if the driver counts them; 32 MB at most."""
    brokers: int = 1
    """The number of servers; each message is on all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running system."""

    port: int
    processes: tuple[ServerProcess, ...]
    brokers: Mapping[int, ServerProcess] = field(default_factory=dict)
    """The servers of a cluster by their client ports."""

    def cpu_seconds(self) -> float:
        """Return the processor time of the whole system so far."""
        return sum(process.cpu_seconds() for process in self.processes)

    def resident_bytes(self) -> int:
        """Return the memory of the whole system now."""
        return sum(process.resident_bytes() for process in self.processes)

    def stop(self) -> None:
        """Stop all servers, the last one first.

        A cluster is killed: its last server would wait for the others in vain.
        """
        for process in reversed(self.processes):
            if len(self.brokers) > 1:
                process.kill()
            else:
                process.stop()


def clustered(variant: Variant, topic_settings: Sequence[str] = ()) -> Variant:
    """Return the same variant with several servers."""
    return replace(
        variant,
        name=f"{variant.name}-{BROKERS}",
        title=f"{variant.title}, {BROKERS} brokers",
        settings=", ".join((variant.settings, f"{BROKERS} replicas", *topic_settings)),
        topic_settings=(*variant.topic_settings, *topic_settings),
        brokers=BROKERS,
    )


class System(ABC):
    """One system of the field."""

    name: str
    title: str
    package: str
    """The packages that provide it, for the reader of the report."""

    @abstractmethod
    def version(self) -> str:
        """Return the installed version; raises Missing."""

    @abstractmethod
    def variants(self) -> Sequence[Variant]:
        """Return its variants, including the default."""

    def prepare(self, variant: Variant, folder: Path) -> None:  # noqa: B027 - few need it
        """Do what is needed once before the first start; not part of the start's time."""

    @abstractmethod
    def start(self, variant: Variant, folder: Path) -> Running:
        """Start it on a free loopback port, with its data in an empty folder.

        Raises NotStarted.
        """

    def leader(self, running: Running, topic: str) -> ServerProcess:
        """Return the server that leads a topic; only for variants with clusters."""
        raise NotImplementedError
