"""How one broker belongs to a cluster: what it is told at its start, and how it tells of itself."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from kafkaesque.broker.peers import Peers, ReplyTo
from kafkaesque.entry import Voters
from kafkaesque.errors import InvalidAssignment, KafkaesqueError, LogError
from kafkaesque.machines.catalog import Catalog
from kafkaesque.machines.catalog_commands import Command, Refused, RegisterBroker, Reply, to_error
from kafkaesque.machines.feature_errors import UnsupportedLevel
from kafkaesque.types import NodeId

TICKS_BETWEEN = 5
"""A broker that is not registered yet asks this often."""


class Membership(Struct, frozen=True, kw_only=True):
    """What a broker must know before it can learn the rest from the catalog."""

    peers: Peers
    voters: Voters
    """Who keeps the catalog, when its log begins on this broker."""

    host: str
    port: int
    """Where clients reach this broker."""

    rack: str = ""
    directory: bytes
    """The id of its data folder."""

    cluster: str = ""
    """The name that the cluster gets from the broker that begins it; empty draws one."""


class Registering:
    """Tells the catalog of this broker, again and again until the committed catalog shows it.

    What a broker's own copy shows in this incarnation came after everything that was committed
    before the broker started: whoever is registered has caught up.
    """

    def __init__(
        self,
        node: NodeId,
        membership: Membership,
        incarnation: int,
        levels: Mapping[str, tuple[int, int]],
        ask: Callable[[Command, ReplyTo], None],
        failed: Callable[[LogError], None],
    ) -> None:
        self._command = RegisterBroker(
            node=node,
            host=membership.host,
            port=membership.port,
            rack=membership.rack,
            directory=membership.directory,
            incarnation=incarnation,
            levels=dict(levels),
        )
        self._ask = ask
        self._failed = failed
        self._is_asking = False
        self._ticks = 0

    def is_done(self, catalog: Catalog) -> bool:
        """Whether the catalog knows this broker as it is now."""
        known = catalog.brokers.get(self._command.node)
        return known is not None and known.incarnation == self._command.incarnation

    def tick(self) -> None:
        """Let time pass; not called any more when it is done."""
        self._ticks += 1
        if self._ticks % TICKS_BETWEEN == 0:
            self.try_now()

    def try_now(self) -> None:
        """Ask, unless an answer is still waited for."""
        if self._is_asking:
            return
        self._is_asking = True
        try:
            self._ask(self._command, self._on_reply)
        except KafkaesqueError as error:
            self._on_error(error)

    def _on_reply(self, reply: Reply) -> None:
        self._is_asking = False
        if isinstance(reply, Refused):
            self._on_error(to_error(reply))

    def _on_error(self, error: KafkaesqueError) -> None:
        self._is_asking = False
        if isinstance(error, InvalidAssignment | UnsupportedLevel):
            self._failed(LogError(str(error)))
