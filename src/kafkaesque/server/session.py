"""What a handler knows of the one who asks."""

from dataclasses import dataclass

from kafkaesque.broker.broker import Broker


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
