"""A cluster as an administrator handles it: any that speaks Kafka's protocol."""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from kafkaesque.client.address import Address, parse_addresses
from kafkaesque.client.batches import Batches
from kafkaesque.client.brokers import Brokers
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.features import Features
from kafkaesque.client.groups import Groups
from kafkaesque.client.pipeline import Pipeline
from kafkaesque.client.prepared import TransactionalProducer
from kafkaesque.client.producer import Producer
from kafkaesque.client.producers import ProducerIdentity, new_producer
from kafkaesque.client.router import Router, Surroundings
from kafkaesque.client.settings import Settings
from kafkaesque.client.share_groups import ShareGroups
from kafkaesque.client.topics import Topics
from kafkaesque.client.transactions import Transactions
from kafkaesque.clock import SystemClock
from kafkaesque.record.view import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """The brokers of a cluster."""

    cluster_id: str | None
    controller: int
    brokers: Mapping[int, Address]


class Admin:
    """Brokers, topics, groups and batches of one cluster, for one thread; close it when done.

    Connects on the first request. Raises InvalidAddress for a bootstrap that names no broker.
    """

    def __init__(
        self,
        bootstrap: str,
        config: ClientConfig | None = None,
        around: Surroundings | None = None,
    ) -> None:
        around = around or Surroundings(
            clock=SystemClock(), chance=random.Random(), sleep=time.sleep
        )
        self._router = Router(parse_addresses(bootstrap), config or ClientConfig(), around)
        self.brokers = Brokers(self._router)
        self.topics = Topics(self._router)
        self.groups = Groups(self._router)
        self.share_groups = ShareGroups(self._router)
        self.transactions = Transactions(self._router)
        self.features = Features(self._router)
        self.settings = Settings(self._router)
        self.batches = Batches(self._router)

    def cluster(self) -> ClusterInfo:
        """Return the cluster's id and its brokers."""
        said = self._router.question(lambda: self._router.metadata([]))
        return ClusterInfo(
            cluster_id=said.cluster_id,
            controller=said.controller_id,
            brokers={b.node_id: Address(host=b.host, port=b.port) for b in said.brokers},
        )

    def serves(self, request: type[Any]) -> bool:
        """Return whether the brokers serve an API that we know, named by its request."""
        return self._router.question(lambda: self._router.serves(request))

    def new_producer(self) -> ProducerIdentity:
        """Return a producer identity that was never used before."""
        return new_producer(self._router)

    def pipeline(self) -> Pipeline:
        """Return a pipeline, which writes to many partitions at once."""
        return Pipeline(self._router)

    def producer(self, codec: Codec = Codec.NONE) -> Producer:
        """Return a new idempotent producer that compresses with `codec`."""
        return Producer(self._router, codec)

    def transactional_producer(
        self, transactional_id: str, codec: Codec, *, timeout_ms: int
    ) -> TransactionalProducer:
        """Return a transactional producer; another process may end its prepared transactions.

        A transaction that is neither ended nor prepared within `timeout_ms` is aborted.
        """
        return TransactionalProducer(self._router, transactional_id, codec, timeout_ms=timeout_ms)

    def close(self) -> None:
        """Close all connections."""
        self._router.close()

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
