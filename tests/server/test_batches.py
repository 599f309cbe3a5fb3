"""Our own APIs over a socket: prepared transactions, and batches that consist of them."""

from pathlib import Path

from kafkaesque.transactional_ids import query_key
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.decide_batch import (
    DecideBatchRequest,
    DecideBatchResponse,
)
from kafkaesque.wire.messages.describe_batch import DescribeBatchRequest, DescribeBatchResponse
from kafkaesque.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.list_prepared import ListPreparedRequest, ListPreparedResponse
from kafkaesque.wire.messages.prepare_txn import PrepareTxnRequest, PrepareTxnResponse
from kafkaesque.wire.messages.register_driver import (
    RegisterDriverRequest,
    RegisterDriverResponse,
)
from tests.server.test_transactions import NAME, Shop, in_shop


def test_a_prepared_transaction_is_listed_with_its_owner_until_it_ends(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        assert await shop.write(producer, 0, b"x", 12) == ErrorCode.NONE
        request = PrepareTxnRequest(
            transactional_id=NAME,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            owner="me",
        )
        assert (await shop.ask(request, 0, PrepareTxnResponse)).error_code == ErrorCode.NONE
        listed = await shop.ask(ListPreparedRequest(), 0, ListPreparedResponse)
        assert [(one.transactional_id, one.owner) for one in listed.prepared] == [(NAME, "me")]
        others = ListPreparedRequest(transactional_ids=("other",))
        assert (await shop.ask(others, 0, ListPreparedResponse)).prepared == ()
        assert (await shop.end(producer, 5)).error_code == ErrorCode.NONE
        listed = await shop.ask(ListPreparedRequest(), 0, ListPreparedResponse)
        assert listed.prepared == ()

    in_shop(tmp_path, story)


def test_a_transaction_that_is_not_open_cannot_be_prepared(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        request = PrepareTxnRequest(
            transactional_id=NAME,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            owner="me",
        )
        answer = await shop.ask(request, 0, PrepareTxnResponse)
        assert answer.error_code == ErrorCode.INVALID_TXN_STATE

    in_shop(tmp_path, story)


def test_only_the_latest_registered_driver_can_decide_a_batch(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=(query_key("q"),))
        found = await shop.ask(request, 6, FindCoordinatorResponse)
        assert [one.error_code for one in found.coordinators] == [ErrorCode.NONE]
        register = RegisterDriverRequest(query="q", sink="s")
        old, new = [await shop.ask(register, 0, RegisterDriverResponse) for _ in range(2)]
        assert new.driver_epoch > old.driver_epoch
        describe = DescribeBatchRequest(query="q", sink="s", batch=3)
        assert not (await shop.ask(describe, 0, DescribeBatchResponse)).is_decided
        for epoch, code in (
            (old.driver_epoch, ErrorCode.PRODUCER_FENCED),
            (new.driver_epoch, ErrorCode.NONE),
        ):
            decide = DecideBatchRequest(query="q", sink="s", batch=3, driver_epoch=epoch)
            assert (await shop.ask(decide, 0, DecideBatchResponse)).error_code == code
        assert (await shop.ask(describe, 0, DescribeBatchResponse)).is_decided

    in_shop(tmp_path, story)
