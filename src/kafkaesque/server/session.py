"""What a handler knows of the one who asks."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from kafkaesque.broker.broker import Broker
from kafkaesque.config import LimitsConfig
from kafkaesque.server.stopping import Stopping
from kafkaesque.server.untaken import Untaken
from kafkaesque.types import NodeId

Forward: TypeAlias = Callable[[NodeId, Any, int], Awaitable[Any]]
"""Has a request, in a version, answered by another broker; raises LinkError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One connection, as handlers see it."""

    broker: Broker
    host: str
    """The address that the client reached us by: it will reach us by it again."""
    port: int
    client_host: str = ""
    """The address that the client came from."""
    connection: int = 0
    """A number that grows with each connection; 0 for those who have none."""
    client_id: str | None = None
    """What the client calls itself in the request at hand."""
    stopping: Stopping = field(default_factory=Stopping)
    """Heard by those who wait for more: they answer with what there is."""
    untaken: Untaken = field(default_factory=partial(Untaken, LimitsConfig().untaken_bytes_max))
    """How much clients have not taken of what they asked for: over its limit they get little."""
    forward: Forward | None = None
    """For what only another broker can answer; what was handed on once is not handed on again."""
    dismiss: Callable[[], None] = lambda: None
    """Lets the connection end after what is being answered."""
    controller_told: Callable[[], None] = lambda: None
    """Called when the client hears who the controller is now."""
    _named: list["Session"] = field(default_factory=list, compare=False, repr=False)
    """This session under the last name that it was asked for: a client hardly changes its own."""

    def named(self, client_id: str | None) -> "Session":
        """Return this session of a client that calls itself so."""
        if client_id == self.client_id:
            return self
        if not self._named or self._named[0].client_id != client_id:
            self._named[:] = [replace(self, client_id=client_id, _named=[])]
        return self._named[0]
