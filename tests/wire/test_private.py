"""Our own messages round-trip, and other bytes are refused."""

from typing import Any

import pytest

from kafkaesque.errors import MalformedFrame
from kafkaesque.wire.apis import APIS, PRIVATE_KEY_FIRST
from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.messages.decide_batch import (
    DecideBatchRequest,
    DecideBatchResponse,
    DecidedTransaction,
)
from kafkaesque.wire.messages.describe_batch import DescribeBatchRequest, DescribeBatchResponse
from kafkaesque.wire.messages.list_prepared import (
    ListPreparedRequest,
    ListPreparedResponse,
    PreparedState,
)
from kafkaesque.wire.messages.prepare_txn import PrepareTxnRequest, PrepareTxnResponse
from kafkaesque.wire.messages.register_driver import (
    RegisterDriverRequest,
    RegisterDriverResponse,
)

TRANSACTION = DecidedTransaction(transactional_id="a", producer_id=2**40, producer_epoch=3)
STATE = PreparedState(
    transactional_id="a",
    producer_id=1,
    producer_epoch=2,
    owner="größe",
    prepared_ms=3,
    limit_ms=4,
    partition_count=5,
)
EXAMPLES = [
    PrepareTxnRequest(transactional_id="a", producer_id=1, producer_epoch=2, owner="o"),
    PrepareTxnResponse(error_code=0),
    PrepareTxnResponse(error_code=48, error_message="no"),
    ListPreparedRequest(),
    ListPreparedRequest(transactional_ids=("a", "b")),
    ListPreparedResponse(error_code=0, prepared=(STATE,)),
    RegisterDriverRequest(query="q", sink="s"),
    RegisterDriverResponse(error_code=0, driver_epoch=7),
    DecideBatchRequest(
        query="q", sink="s", batch=2**40, driver_epoch=1, transactions=(TRANSACTION,)
    ),
    DecideBatchResponse(error_code=0, transactional_ids=("a",), was_decided_before=True),
    DescribeBatchRequest(query="q", sink="s", batch=9),
    DescribeBatchResponse(error_code=0, is_decided=True, transactional_ids=("a", "b")),
]
each = pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)


@each
def test_a_private_message_round_trips(message: Any) -> None:
    assert decode(type(message), 0, encode(message, 0)) == message


@each
def test_a_truncated_frame_is_refused(message: Any) -> None:
    data = encode(message, 0)
    for size in range(len(data)):
        with pytest.raises(MalformedFrame):
            decode(type(message), 0, data[:size])


def test_every_private_message_has_an_example() -> None:
    ours = [row for key, row in APIS.items() if key >= PRIVATE_KEY_FIRST]
    messages = {message for row in ours for message in (row.request, row.response)}
    assert messages == {type(message) for message in EXAMPLES}
