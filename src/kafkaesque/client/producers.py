"""Producer identities, by which brokers recognise duplicates."""

from dataclasses import dataclass

from kafkaesque.client.refusals import check
from kafkaesque.client.router import Router
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_NO_TIMEOUT_MS = -1
"""The timeout of transactions, which an idempotent producer lacks; librdkafka sends the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentity:
    """What every batch of one producer carries in addition to its sequence."""

    producer_id: int
    producer_epoch: int


def new_producer(router: Router) -> ProducerIdentity:
    """Return an unused identity; one lost on the way is never used."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)

    def ask() -> ProducerIdentity:
        said = router.ask_any(request, InitProducerIdResponse)
        check(said.error_code, "a producer id")
        return ProducerIdentity(producer_id=said.producer_id, producer_epoch=said.producer_epoch)

    return router.question(ask)
