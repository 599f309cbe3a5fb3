"""A broker's membership in a cluster: its initial knowledge, and its registration."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from kafkaesque.broker.cluster.peers import Peers
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_commands import AskCatalog, CatalogAnswer, RegisterBroker
from kafkaesque.machines.catalog.catalog_errors import InvalidAssignment, UnsupportedLevel
from kafkaesque.types import NodeId

TICKS_BETWEEN = 5
"""The ticks between two attempts to register."""


class Membership(Struct, frozen=True, kw_only=True):
    """What a broker must know before it can learn the rest from the catalog."""

    peers: Peers
    voters: Voters
    """The voters of the catalog, if its log starts on this broker."""

    host: str
    port: int
    """The address for clients."""

    rack: str = ""
    directory: bytes
    """The id of its data folder."""

    cluster: str = ""
    """The name for the cluster if this broker creates it; empty generates one."""


class Registering:
    """Registers this broker in the catalog, retrying until the committed catalog shows it.

    What a broker's own copy shows in this incarnation comes after everything committed before the
    broker started: so a registered broker has caught up.
    """

    def __init__(
        self,
        node: NodeId,
        membership: Membership,
        incarnation: int,
        levels: Mapping[str, tuple[int, int]],
        ask: AskCatalog,
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
        """Whether the catalog shows this broker's current incarnation."""
        known = catalog.brokers.get(self._command.node)
        return known is not None and known.incarnation == self._command.incarnation

    def tick(self) -> None:
        """Advance one tick; not called any more when it is done."""
        self._ticks += 1
        if self._ticks % TICKS_BETWEEN == 0:
            self.try_now()

    def try_now(self) -> None:
        """Register, unless a reply is outstanding."""
        if not self._is_asking:
            self._is_asking = True
            self._ask(self._command, self._on_answer)

    def _on_answer(self, answer: CatalogAnswer) -> None:
        self._is_asking = False
        if isinstance(answer, InvalidAssignment | UnsupportedLevel):
            self._failed(LogError(str(answer)))
