"""What a handler knows of the one who asks."""

from dataclasses import dataclass, field

from kafkaesque.broker.broker import Broker
from kafkaesque.server.stopping import Stopping


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One connection, as handlers see it."""

    broker: Broker
    host: str
    """The address that the client reached us by: it will reach us by it again."""
    port: int
    client_host: str = ""
    """The address that the client came from."""
    client_id: str | None = None
    """What the client calls itself in the request at hand."""
    stopping: Stopping = field(default_factory=Stopping)
    """Heard by those who wait for more: they answer with what there is."""
