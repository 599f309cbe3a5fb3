"""Asks every available broker, and reports whose answer is missing.

Metadata also names brokers that are down: waiting for them would lose the others' answers.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kafkaesque.client.errors import ClientError, ConnectionLost, Unreachable
from kafkaesque.client.refusals import check
from kafkaesque.client.router import Router
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)

R = TypeVar("R")

LOSSES_MAX = 2
"""Losses per broker before it counts as missing: the first may be that of an old connection."""


class Everyone(Generic[R]):
    """One request to all brokers; those that have answered are not asked again."""

    def __init__(
        self, router: Router, request: Any, response: type[R], accept: Callable[[R], None]
    ) -> None:
        self._router = router
        self._request = request
        self._response = response
        self._accept = accept
        self._answers: dict[NodeId, R] = {}
        self._losses: Counter[NodeId] = Counter()
        self.missing: set[NodeId] = set()
        """Brokers that were away or lost in the last `ask`."""

    def ask(self) -> list[R]:
        """Return the answers, ordered by broker number: for `Router.question`.

        `accept` raises for an invalid answer. Raises Unreachable or ConnectionLost if no broker
        answered.
        """
        there, self.missing = self._presence()
        problem: ClientError | None = None
        for node in sorted(there - self._answers.keys()):
            try:
                said = self._router.ask_node(node, self._request, self._response)
            except (Unreachable, ConnectionLost) as error:
                self._losses[node] += 1
                if self._losses[node] < LOSSES_MAX:
                    raise
                self.missing.add(node)
                problem = error
            else:
                self._accept(said)
                self._answers[node] = said
        if not self._answers and problem is not None:
            raise problem
        return [self._answers[node] for node in sorted(self._answers)]

    def forget(self) -> None:
        """Discard outdated answers, so that all brokers are asked again."""
        self._answers.clear()

    def _presence(self) -> tuple[set[NodeId], set[NodeId]]:
        """Return live and unavailable brokers; if brokers cannot tell, all named ones are live."""
        if not self._router.serves(DescribeClusterRequest):
            return set(self._router.nodes()), set()
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=True
        )
        said = self._router.ask_any(request, DescribeClusterResponse)
        check(said.error_code, "the cluster", said.error_message)
        away = {one.broker_id for one in said.brokers if one.is_fenced}
        return {one.broker_id for one in said.brokers} - away, away
