"""Transactions over a socket: both versions of them, and what administrators see."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import NamedTuple, TypeVar

from kafkaesque.clock import SystemClock
from kafkaesque.machines.transactions.transaction_commands import Producer
from kafkaesque.record.view import split_batches
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkaesque.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkaesque.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from kafkaesque.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkaesque.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkaesque.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkaesque.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkaesque.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafkaesque.wire.messages.metadata import MetadataResponse
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkaesque.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafkaesque.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.broker.transactional import transactional
from tests.server.test_connection import Client, a_topic, running

NAME = "t"
SECONDS_MAX = 120
R = TypeVar("R")
Connect = Callable[[], Awaitable[Client]]


class Fetched(NamedTuple):
    """What a consumer has read in several answers."""

    records: bytes
    aborted_transactions: list[AbortedTransaction] | None
    last_stable_offset: int
    high_watermark: int


class Shop:
    """A client of a node that has the topic `orders`, as one transactional producer uses it."""

    def __init__(self, client: Client, connect: Connect) -> None:
        self.client = client
        self.connect = connect

    async def ask(self, request: object, version: int, kind: type[R]) -> R:
        answer = await self.client.ask(request, version, kind)
        assert isinstance(answer, kind)
        return answer

    async def init(self) -> Producer:
        request = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=60_000)
        answer = await self.ask(request, 5, InitProducerIdResponse)
        assert answer.error_code == ErrorCode.NONE
        return Producer(answer.producer_id, answer.producer_epoch)

    async def add(self, producer: Producer, version: int = 3) -> int:
        topics = (AddPartitionsToTxnTopic(name="orders", partitions=(0,)),)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )
        answer = await self.ask(request, version, AddPartitionsToTxnResponse)
        result = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
        return result.partition_error_code

    async def write(self, producer: Producer, sequence: int, value: bytes, version: int) -> int:
        return (await self.written(producer, sequence, value, version)).error_code

    async def written(
        self, producer: Producer, sequence: int, value: bytes, version: int
    ) -> PartitionProduceResponse:
        # Current times: the broker's clock is the machine's, and it deletes expired records.
        now_ms = SystemClock().now_ms()
        batch = transactional(sequence, value, producer=producer, timestamp_ms=now_ms)
        data = PartitionProduceData(index=0, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=NAME,
            acks=-1,
            timeout_ms=5_000,
            topic_data=(TopicProduceData(name="orders", partition_data=(data,)),),
        )
        answer = await self.ask(request, version, ProduceResponse)
        return answer.responses[0].partition_responses[0]

    async def end(
        self, producer: Producer, version: int, *, is_commit: bool = True
    ) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=NAME,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=is_commit,
        )
        return await self.ask(request, version, EndTxnResponse)

    async def fetch(self, isolation: int) -> Fetched:
        """Read everything from the start, like a consumer: an answer may be incomplete."""
        found = await self._fetch(0, isolation)
        data, aborted = bytes(found.records or b""), list(found.aborted_transactions or ())
        while found.records:
            last = list(split_batches(memoryview(data)))[-1].end_offset
            found = await self._fetch(last, isolation)
            data += bytes(found.records or b"")
            aborted += found.aborted_transactions or ()
        return Fetched(
            records=data,
            aborted_transactions=None if found.aborted_transactions is None else aborted,
            last_stable_offset=found.last_stable_offset,
            high_watermark=found.high_watermark,
        )

    async def _fetch(self, offset: int, isolation: int) -> PartitionData:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=isolation,
            topics=(FetchTopic(topic="orders", partitions=(part,)),),
        )
        answer = await self.ask(request, 12, FetchResponse)
        return answer.responses[0].partitions[0]

    async def stable_at(self, offset: int) -> None:
        """Wait until everything before an offset is decided: markers follow the answer."""
        async with asyncio.timeout(SECONDS_MAX):
            while await self.latest(1) < offset:
                pass

    async def latest(self, isolation: int) -> int:
        part = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=(ListOffsetsTopic(name="orders", partitions=(part,)),),
        )
        answer = await self.ask(request, 7, ListOffsetsResponse)
        return answer.topics[0].partitions[0].offset


def in_shop(data: Path, story: Callable[[Shop], Coroutine[None, None, None]]) -> None:
    """Run a story with a producer of a node that has a topic and coordinates transactions."""

    async def go() -> None:
        async with running(data) as connect:
            client = await connect()
            await client.ask(a_topic("orders"), 9, MetadataResponse)
            request = FindCoordinatorRequest(key_type=1, coordinator_keys=(NAME,))
            found = await client.ask(request, 6, FindCoordinatorResponse)
            assert isinstance(found, FindCoordinatorResponse)
            assert [one.error_code for one in found.coordinators] == [0]
            await story(Shop(client, connect))

    asyncio.run(go())


def test_the_broker_announces_the_second_version_of_transactions(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        answer = await shop.ask(ApiVersionsRequest(), 3, ApiVersionsResponse)
        levels = {one.name: one.max_version_level for one in answer.finalized_features}
        assert levels["transaction.version"] == 2

    in_shop(tmp_path, story)


def test_with_v2_writing_adds_a_partition_and_each_end_raises_the_epoch(
    tmp_path: Path,
) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        for number in range(3):
            assert await shop.write(producer, 0, b"%d" % number, 12) == ErrorCode.NONE
            answer = await shop.end(producer, 5, is_commit=number != 1)
            assert answer.error_code == ErrorCode.NONE
            assert answer.producer_epoch == producer.epoch + 1
            again = await shop.end(producer, 5, is_commit=number != 1)
            assert again == answer, "b29"
            await shop.stable_at(2 * number + 2)
            late = await shop.write(producer, 1, b"late", 12)
            assert late == ErrorCode.INVALID_PRODUCER_EPOCH
            producer = Producer(answer.producer_id, answer.producer_epoch)
        found = await shop.fetch(isolation=1)
        aborted = found.aborted_transactions
        assert aborted is not None
        assert [(one.producer_id, one.first_offset) for one in aborted] == [
            (producer.producer_id, 2)
        ]
        assert (found.last_stable_offset, found.high_watermark) == (6, 6)
        assert (await shop.fetch(isolation=0)).aborted_transactions is None, "b31"

    in_shop(tmp_path, story)


def test_a_partition_that_was_not_added_is_refused_with_each_versions_error(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        assert await shop.write(producer, 0, b"x", 10) == ErrorCode.INVALID_TXN_STATE
        assert await shop.write(producer, 0, b"x", 11) == ErrorCode.TRANSACTION_ABORTABLE
        assert await shop.add(producer) == ErrorCode.NONE
        assert await shop.write(producer, 0, b"x", 10) == ErrorCode.NONE

    in_shop(tmp_path, story)


def test_reusing_sequences_of_an_aborted_transaction_needs_a_new_epoch(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        assert await shop.add(producer) == ErrorCode.NONE
        assert await shop.write(producer, 0, b"its answer is lost", 10) == ErrorCode.NONE
        assert (await shop.end(producer, 4, is_commit=False)).error_code == ErrorCode.NONE
        await shop.stable_at(2)
        assert await shop.add(producer) == ErrorCode.NONE
        answer = await shop.written(producer, 0, b"other records", 10)
        assert answer.error_code == ErrorCode.UNKNOWN_PRODUCER_ID
        assert answer.log_start_offset == 0, "without it the Java client retries again and again"
        assert (await shop.end(producer, 4, is_commit=False)).error_code == ErrorCode.NONE
        higher = await shop.init()
        assert higher.epoch > producer.epoch
        assert await shop.add(higher) == ErrorCode.NONE
        assert await shop.write(higher, 0, b"other records", 10) == ErrorCode.NONE

    in_shop(tmp_path, story)


def test_a_transaction_without_records_is_refused_at_once(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        await shop.init()
        data = PartitionProduceData(index=0, records=b"")
        request = ProduceRequest(
            transactional_id=NAME,
            acks=-1,
            timeout_ms=1000 * 2 * SECONDS_MAX,
            topic_data=(TopicProduceData(name="orders", partition_data=(data,)),),
        )
        answer = await shop.ask(request, 12, ProduceResponse)
        (said,) = answer.responses[0].partition_responses
        assert said.error_code == ErrorCode.INVALID_RECORD

    in_shop(tmp_path, story)


def test_readers_of_committed_records_neither_see_nor_list_open_transactions(
    tmp_path: Path,
) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        await shop.write(producer, 0, b"x", 12)
        found = await shop.fetch(isolation=1)
        assert (found.last_stable_offset, found.high_watermark) == (0, 1)
        assert not found.records
        assert (await shop.fetch(isolation=0)).records
        assert (await shop.latest(1), await shop.latest(0)) == (0, 1)

    in_shop(tmp_path, story)


def test_a_fenced_producer_gets_its_versions_error(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        old = await shop.init()
        await shop.init()
        assert await shop.add(old, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await shop.add(old, 2) == ErrorCode.PRODUCER_FENCED
        assert (await shop.end(old, 1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await shop.end(old, 4)).error_code == ErrorCode.PRODUCER_FENCED

    in_shop(tmp_path, story)


def test_b26_a_late_end_on_an_old_connection_ends_nothing(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        await shop.add(producer)
        await shop.write(producer, 0, b"first", 10)
        new = Shop(await shop.connect(), shop.connect)
        assert (await new.end(producer, 3)).error_code == ErrorCode.NONE
        assert await new.add(producer) == ErrorCode.NONE
        assert await new.write(producer, 1, b"second", 10) == ErrorCode.NONE
        late = await shop.end(producer, 3)
        assert late.error_code == ErrorCode.NOT_COORDINATOR
        assert await new.latest(1) == 2, "the second transaction is still open"
        assert (await new.end(producer, 3, is_commit=False)).error_code == ErrorCode.NONE

    in_shop(tmp_path, story)


def test_brokers_verify_several_transactions_at_once(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        await shop.add(producer)
        topics = (AddPartitionsToTxnTopic(name="orders", partitions=(0, 1)),)
        asked = AddPartitionsToTxnTransaction(
            transactional_id=NAME,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=True,
            topics=topics,
        )
        request = AddPartitionsToTxnRequest(transactions=(asked,))
        answer = await shop.ask(request, 5, AddPartitionsToTxnResponse)
        results = answer.results_by_transaction[0].topic_results[0].results_by_partition
        assert [one.partition_error_code for one in results] == [
            ErrorCode.NONE,
            ErrorCode.TRANSACTION_ABORTABLE,
        ]

    in_shop(tmp_path, story)


def test_an_unknown_topic_fails_the_whole_request(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        topics = tuple(
            AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in ("nowhere", "orders")
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )
        answer = await shop.ask(request, 3, AddPartitionsToTxnResponse)
        codes = [
            topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_topic_v3_and_below
        ]
        wanted = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED]
        assert codes == wanted
        assert await shop.write(producer, 0, b"x", 10) == ErrorCode.INVALID_TXN_STATE

    in_shop(tmp_path, story)


def test_offsets_of_a_transaction_are_unstable_until_it_ends(tmp_path: Path) -> None:
    async def offset(shop: Shop) -> tuple[int, int]:
        topics = (OffsetFetchRequestTopics(name="orders", partition_indexes=(0,)),)
        group = OffsetFetchRequestGroup(group_id="g", topics=topics)
        request = OffsetFetchRequest(groups=(group,), require_stable=True)
        answer = await shop.ask(request, 8, OffsetFetchResponse)
        one = answer.groups[0].topics[0].partitions[0]
        return one.error_code, one.committed_offset

    async def story(shop: Shop) -> None:
        producer = await shop.init()
        add = AddOffsetsToTxnRequest(
            transactional_id=NAME,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id="g",
        )
        assert (await shop.ask(add, 3, AddOffsetsToTxnResponse)).error_code == ErrorCode.NONE
        part = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=5, committed_metadata=None
        )
        commit = TxnOffsetCommitRequest(
            transactional_id=NAME,
            group_id="g",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=(TxnOffsetCommitRequestTopic(name="orders", partitions=(part,)),),
        )
        answer = await shop.ask(commit, 3, TxnOffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        assert await offset(shop) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        await shop.end(producer, 3)
        async with asyncio.timeout(SECONDS_MAX):
            while (found := await offset(shop))[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                pass  # the marker reaches the group after the answer
        assert found == (ErrorCode.NONE, 5)

    in_shop(tmp_path, story)


def test_administrators_list_and_describe_open_transactions(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        await shop.write(producer, 0, b"x", 12)
        listed = await shop.ask(
            ListTransactionsRequest(state_filters=("Ongoing", "Odd")), 1, ListTransactionsResponse
        )
        assert listed.unknown_state_filters == ("Odd",)
        found = [(one.transactional_id, one.transaction_state) for one in listed.transaction_states]
        assert found == [(NAME, "Ongoing")]
        young = ListTransactionsRequest(duration_filter=60_000)
        assert not (await shop.ask(young, 1, ListTransactionsResponse)).transaction_states
        described = await shop.ask(
            DescribeTransactionsRequest(transactional_ids=(NAME, "none")),
            0,
            DescribeTransactionsResponse,
        )
        one, none = described.transaction_states
        assert (one.transaction_state, one.producer_id) == ("Ongoing", producer.producer_id)
        assert [(t.topic, t.partitions) for t in one.topics] == [("orders", (0,))]
        assert none.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        topics = (TopicRequest(name="orders", partition_indexes=(0, 77)),)
        producers = await shop.ask(
            DescribeProducersRequest(topics=topics), 0, DescribeProducersResponse
        )
        there, missing = producers.topics[0].partitions
        assert [p.current_txn_start_offset for p in there.active_producers] == [0]
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    in_shop(tmp_path, story)


def test_a_marker_can_be_written_by_hand(tmp_path: Path) -> None:
    async def story(shop: Shop) -> None:
        producer = await shop.init()
        await shop.write(producer, 0, b"x", 12)
        topics = tuple(
            WritableTxnMarkerTopic(name=name, partition_indexes=(0,))
            for name in ("orders", "nowhere")
        )
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=False,
            topics=topics,
            coordinator_epoch=0,
        )
        answer = await shop.ask(
            WriteTxnMarkersRequest(markers=(marker,)), 1, WriteTxnMarkersResponse
        )
        codes = [t.partitions[0].error_code for t in answer.markers[0].topics]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await shop.latest(1) == 2

    in_shop(tmp_path, story)
