"""Carries commands to the leader of the catalog. Any broker accepts them."""

from collections.abc import Callable

from kafkaesque.broker.cluster.calls import COMMAND
from kafkaesque.broker.cluster.catalog_coordinator import CatalogCoordinator
from kafkaesque.broker.cluster.peers import Peers
from kafkaesque.machines.catalog.catalog_commands import (
    AnswerTo,
    CatalogCommand,
    Reply,
    to_answer,
    to_reply,
)
from kafkaesque.types import NodeId


class Changes:
    """The changes that this broker requests or decides."""

    def __init__(
        self,
        node: NodeId,
        coordinator: CatalogCoordinator,
        peers: Peers,
        leader: Callable[[], NodeId | None],
    ) -> None:
        self._node = node
        self._coordinator = coordinator
        self._peers = peers
        self._leader = leader

    def ask(self, command: CatalogCommand, to: AnswerTo) -> None:
        """Have a command carried out, here or by the leader; `to` gets the answer once.

        That may be before this returns.
        """
        leader = self._leader()
        if self._coordinator.is_hosted or leader is None or leader == self._node:
            self._coordinator.ask(command, to)
        else:
            self._peers.ask(leader, COMMAND, command, lambda reply: to(to_answer(reply)))

    def carry_out(self, command: CatalogCommand, reply: Callable[[Reply], None]) -> None:
        """Carry out another broker's command, which takes this one for the leader."""
        self._coordinator.ask(command, lambda answer: reply(to_reply(answer)))
