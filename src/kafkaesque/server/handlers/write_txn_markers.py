"""WriteTxnMarkers: write the ends of transactions into partitions that this broker leads."""

import asyncio
from collections.abc import Mapping, Sequence

from kafkaesque.broker.partition.producers import NO_NUMBER
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_questions import Marker
from kafkaesque.machines.transactions.transaction_records import Place
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


async def handle(
    request: WriteTxnMarkersRequest, version: int, session: Session
) -> WriteTxnMarkersResponse:
    """Write each marker and wait until it is committed."""
    results = [await _one(marker, session) for marker in request.markers]
    return WriteTxnMarkersResponse(markers=tuple(results))


async def _one(asked: WritableTxnMarker, session: Session) -> WritableTxnMarkerResult:
    catalog = session.broker.catalog
    ids = {
        t.name: catalog.topics[t.name].topic_id for t in asked.topics if t.name in catalog.topics
    }
    places = [
        (ids[topic.name], index)
        for topic in asked.topics
        if topic.name in ids
        for index in topic.partition_indexes
    ]
    marker = Marker(
        producer_id=asked.producer_id,
        epoch=asked.producer_epoch,
        is_commit=asked.transaction_result,
        coordinator_term=asked.coordinator_epoch,
        number=NO_NUMBER,
    )
    told = await _written(marker, sorted(set(places)), session)
    return WritableTxnMarkerResult(
        producer_id=asked.producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=_code(topic.name, index, ids, told)
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in asked.topics
        ),
    )


async def _written(
    marker: Marker, places: Sequence[Place], session: Session
) -> dict[Place, KafkaesqueError | None]:
    told: dict[Place, KafkaesqueError | None] = {}
    if not places:
        return told
    all_told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(place: Place, error: KafkaesqueError | None) -> None:
        told[place] = error
        if len(told) == len(places) and not all_told.done():
            all_told.set_result(None)

    session.broker.transactions.write(marker, places, tell)
    await all_told
    return told


def _code(
    topic: str,
    index: int,
    ids: Mapping[str, bytes],
    told: Mapping[Place, KafkaesqueError | None],
) -> ErrorCode:
    if topic not in ids:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    error = told[ids[topic], index]
    return ErrorCode.NONE if error is None else code_of(error)
