"""What a handler knows about its client."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from kafkaesque.broker.broker import Broker
from kafkaesque.callbacks import ignore
from kafkaesque.server.requests.stop_signal import Stopping
from kafkaesque.server.requests.unsent_bytes import Untaken
from kafkaesque.server_config import LimitsConfig
from kafkaesque.types import NodeId

Forward: TypeAlias = Callable[[NodeId, Any, int], Awaitable[Any]]
"""Forwards a request in a version to another broker; raises LinkError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One connection, as handlers see it."""

    broker: Broker
    host: str
    """The local address that the client connected to, and will use again."""
    port: int
    client_host: str = ""
    """The client's own address."""
    connection: int = 0
    """A number that grows with each connection; 0 for callers without one."""
    client_id: str | None = None
    """The client id of the current request."""
    stopping: Stopping = field(default_factory=Stopping)
    """Observed by long polls: they answer with what they have."""
    untaken: Untaken = field(default_factory=partial(Untaken, LimitsConfig().untaken_bytes_max))
    """Unsent response bytes; above the limit, fetches shrink."""
    forward: Forward | None = None
    """Reaches brokers that alone can answer; a forwarded request is not forwarded again."""
    dismiss: Callable[[], None] = ignore
    """Closes the connection after the current response."""
    controller_told: Callable[[], None] = ignore
    """Called when the client learns the current controller."""
    when_lost: dict[object, Callable[[], None]] = field(default_factory=dict, compare=False)
    """Called when the connection is lost; each caller has a key of its own."""
    _named: list["Session"] = field(default_factory=list, compare=False, repr=False)
    """The session of the last client id: a client rarely changes its id."""

    def named(self, client_id: str | None) -> "Session":
        """Return this session with the given client id."""
        if client_id == self.client_id:
            return self
        if not self._named or self._named[0].client_id != client_id:
            self._named[:] = [replace(self, client_id=client_id, _named=[])]
        return self._named[0]
