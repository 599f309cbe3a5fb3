"""Identities of producers, by which brokers tell a repetition from something new."""

from dataclasses import dataclass

from kafkaesque.client.refusals import check
from kafkaesque.client.router import Router
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_NO_TIMEOUT_MS = -1
"""Of transactions, of which an idempotent producer has none; librdkafka says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentity:
    """What every batch of one producer carries beside its sequence."""

    producer_id: int
    producer_epoch: int


def new_producer(router: Router) -> ProducerIdentity:
    """Return an identity that nobody had; one that is lost on the way is never used."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)

    def ask() -> ProducerIdentity:
        said = router.ask_any(request, InitProducerIdResponse)
        check(said.error_code, "a producer id")
        return ProducerIdentity(producer_id=said.producer_id, producer_epoch=said.producer_epoch)

    return router.question(ask)
