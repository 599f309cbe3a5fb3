"""What an adapter tells of its system, and what it starts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from bench.field.processes import ServerProcess

BROKERS = 3
"""How many a cluster has; each message is on all of them."""


class Durability(Enum):
    """What has become of a message when it is acknowledged."""

    MEMORY = "memory"
    """It is in the server's memory."""
    OS = "os"
    """It was handed to the operating system; a power cut may lose it."""
    ALWAYS = "always"
    """It was synced to the disk."""


class Protocol(Enum):
    """What a system can be asked to do."""

    KAFKA = "kafka"
    """Batches, compression, partitions, any number of readers."""
    STREAM = "stream"
    """Any number of readers, each from where it likes."""
    QUEUE = "queue"
    """A message goes to one reader and is gone."""


class Missing(Exception):
    """A system cannot be measured here; says why, and which package would bring it."""

    def __init__(self, reason: str, package: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.package = package


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A system in one way of running it."""

    name: str
    """As in `kafka-os`."""
    title: str
    durability: Durability
    is_default: bool
    """Whether this is how it runs when nobody sets anything."""
    settings: str
    """The settings that matter here, in its own words."""
    kind: str = ""
    """The type of queue, where a system has several."""
    topic_settings: tuple[str, ...] = ()
    """What the driver sets for each topic: NAME=VALUE."""
    protocol: Protocol = Protocol.STREAM
    driver: str = ""
    reader: str = ""
    """The driver that reads messages where they lie in what was received, if there is one."""
    window: int = 1024
    """Messages that wait for their acknowledgement, where the driver counts them; 32 MB at most."""
    brokers: int = 1
    """How many servers there are; as many have each message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A system that takes connections."""

    port: int
    processes: tuple[ServerProcess, ...]
    brokers: Mapping[int, ServerProcess] = field(default_factory=dict)
    """The servers of a cluster by the port that each has for clients."""

    def cpu_seconds(self) -> float:
        """Return what all of it took so far."""
        return sum(process.cpu_seconds() for process in self.processes)

    def resident_bytes(self) -> int:
        """Return what all of it holds now."""
        return sum(process.resident_bytes() for process in self.processes)

    def stop(self) -> None:
        """End all of it, the last one first.

        A cluster is killed: the last one of it would wait in vain for the others to agree.
        """
        for process in reversed(self.processes):
            if len(self.brokers) > 1:
                process.kill()
            else:
                process.stop()


def clustered(variant: Variant, topic_settings: Sequence[str] = ()) -> Variant:
    """Return the same way of running a system with several servers."""
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
    """What brings it, in words for a person."""

    @abstractmethod
    def version(self) -> str:
        """Return which version is there; raises Missing."""

    @abstractmethod
    def variants(self) -> Sequence[Variant]:
        """Return the ways to run it, the default one among them."""

    def prepare(self, variant: Variant, folder: Path) -> None:  # noqa: B027 - few need it
        """Do what has to be done once before the first start; not part of the start's time."""

    @abstractmethod
    def start(self, variant: Variant, folder: Path) -> Running:
        """Start it on a free port of loopback, its data in an empty folder.

        Raises NotStarted.
        """

    def leader(self, running: Running, topic: str) -> ServerProcess:
        """Return the server that takes the messages of a topic; only of those with clusters."""
        raise NotImplementedError
