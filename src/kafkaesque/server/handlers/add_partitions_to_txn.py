"""AddPartitionsToTxn: add partitions to a transaction, or verify that they belong to it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog import INTERNAL_TOPICS
from kafkaesque.machines.transactions.transaction_commands import Add, Producer, Verify
from kafkaesque.machines.transactions.transaction_records import Place
from kafkaesque.server.answers.ask_coordinator import ask_transaction
from kafkaesque.server.requests.callback_waits import is_current
from kafkaesque.server.requests.errors import transactional_code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

MANY_SINCE = 4
FENCED_SINCE = 2
ABORTABLE_SINCE = 5

Named: TypeAlias = tuple[str, int]


async def handle(
    request: AddPartitionsToTxnRequest, version: int, session: Session
) -> AddPartitionsToTxnResponse:
    """Add all partitions of a transaction or none."""
    if version < MANY_SINCE:
        asked = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        results = await _one(asked, version, session)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    return AddPartitionsToTxnResponse(
        results_by_transaction=tuple(
            [
                AddPartitionsToTxnResult(
                    transactional_id=asked.transactional_id,
                    topic_results=await _one(asked, version, session),
                )
                for asked in request.transactions
            ]
        )
    )


async def _one(
    asked: AddPartitionsToTxnTransaction, version: int, session: Session
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    places = _places(asked.topics, session)
    if any(place is None for place in places.values()):
        is_sure = await is_current(session.broker)
        places = _places(asked.topics, session)
        if not is_sure and any(place is None for place in places.values()):
            codes = dict.fromkeys(places, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return _results(asked.topics, codes)
    if any(place is None for place in places.values()):
        codes = {
            named: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if place is None
            else ErrorCode.OPERATION_NOT_ATTEMPTED
            for named, place in places.items()
        }
        return _results(asked.topics, codes)
    known = {named: place for named, place in places.items() if place is not None}
    try:
        codes = await _asked(asked, known, version, session)
    except KafkaesqueError as error:
        code = transactional_code_of(
            error,
            knows_fenced=version >= FENCED_SINCE,
            knows_abortable=version >= ABORTABLE_SINCE,
        )
        codes = dict.fromkeys(known, code)
    return _results(asked.topics, codes)


async def _asked(
    asked: AddPartitionsToTxnTransaction,
    places: Mapping[Named, Place],
    version: int,
    session: Session,
) -> dict[Named, ErrorCode]:
    name = asked.transactional_id
    producer = Producer(asked.producer_id, asked.producer_epoch)
    wanted = tuple(places.values())
    if not asked.verify_only:
        add = Add(transactional_id=name, producer=producer, places=wanted)
        await ask_transaction(session, add)
        return dict.fromkeys(places, ErrorCode.NONE)
    verify = Verify(transactional_id=name, producer=producer, places=wanted)
    verified = await ask_transaction(session, verify)
    is_abortable = version >= ABORTABLE_SINCE
    refused = ErrorCode.TRANSACTION_ABORTABLE if is_abortable else ErrorCode.INVALID_TXN_STATE
    return {
        named: refused if place in verified.missing else ErrorCode.NONE
        for named, place in places.items()
    }


def _places(
    topics: Sequence[AddPartitionsToTxnTopic], session: Session
) -> dict[Named, Place | None]:
    """Return each named partition, None for those that do not exist."""
    found: dict[Named, Place | None] = {}
    for topic in topics:
        known = session.broker.catalog.topics.get(topic.name)
        for index in topic.partitions:
            is_there = known is not None and 0 <= index < known.partitions
            if known is None or not is_there or topic.name in INTERNAL_TOPICS:
                found[topic.name, index] = None
            else:
                found[topic.name, index] = known.topic_id, index
    return found


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], codes: Mapping[Named, ErrorCode]
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes[topic.name, index]
                )
                for index in topic.partitions
            ),
        )
        for topic in topics
    )
