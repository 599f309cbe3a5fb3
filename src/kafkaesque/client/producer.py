"""An idempotent producer of whole batches: resending after a loss makes no duplicates.

One request per leader carries at most one batch for each partition, as Kafka requires. A producer
that failed does not know which of its batches were accepted, so it cannot be used again. The
caller goes on with a new one, and what it resends may then be there twice.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from kafkaesque.client.errors import Refused
from kafkaesque.client.producers import new_producer
from kafkaesque.client.refusals import check
from kafkaesque.client.router import Router
from kafkaesque.client.topics import VERSION_MAX_BY_NAME, Place
from kafkaesque.record.build import ProducerStamp, wrap_records
from kafkaesque.record.view import Codec
from kafkaesque.types import Buffer
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_ALL = -1
_SEQUENCE_END = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRecords:
    """Records encoded as a batch's payload, with offset deltas from 0."""

    data: Buffer
    count: int
    timestamp_ms: int
    timestamp_ms_max: int | None = None
    """The newest timestamp; without it all records have the first one."""


class BatchSender:
    """Appends the batches of one producer with acks=all, numbering them by sequence."""

    def __init__(self, router: Router, codec: Codec, transactional_id: str | None = None) -> None:
        self._router = router
        self._codec = codec
        self._transactional_id = transactional_id
        self._sequences: dict[Place, int] = {}

    def start_over(self) -> None:
        """Restart sequences at 0 for the producer's next epoch."""
        self._sequences.clear()

    def send(self, identity: tuple[int, int], records: Mapping[Place, EncodedRecords]) -> None:
        """Append one batch to each partition, as the producer of this id and epoch."""
        left = {place: self._batch(identity, place, one) for place, one in records.items()}
        self._router.question(lambda: self._append(left))
        for place, one in records.items():
            self._sequences[place] = (self._sequences.get(place, 0) + one.count) % _SEQUENCE_END

    def _batch(self, identity: tuple[int, int], place: Place, records: EncodedRecords) -> bytearray:
        producer_id, epoch = identity
        return wrap_records(
            records.data,
            record_count=records.count,
            timestamp_ms=records.timestamp_ms,
            timestamp_ms_max=records.timestamp_ms_max,
            codec=self._codec,
            producer=ProducerStamp(
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=self._sequences.get(place, 0),
            ),
            is_transactional=self._transactional_id is not None,
        )

    def _append(self, left: dict[Place, bytearray]) -> None:
        """Send what is left; accepted batches leave `left`, so a retry sends only the rest."""
        by_leader: defaultdict[int, list[Place]] = defaultdict(list)
        for topic, partition in left:
            by_leader[self._router.leader(topic, partition)].append((topic, partition))
        for leader, places in by_leader.items():
            self._append_at(leader, places, left)

    def _append_at(self, leader: int, places: list[Place], left: dict[Place, bytearray]) -> None:
        by_topic: defaultdict[str, list[PartitionProduceData]] = defaultdict(list)
        for place in places:
            data = PartitionProduceData(index=place[1], records=left[place])
            by_topic[place[0]].append(data)
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=_ALL,
            timeout_ms=self._router.config.request_ms_max,
            topic_data=tuple(
                TopicProduceData(name=topic, partition_data=tuple(rows))
                for topic, rows in by_topic.items()
            ),
        )
        said = self._router.ask_node(
            leader, request, ProduceResponse, version_max=VERSION_MAX_BY_NAME
        )
        answers = [
            (topic.name, one) for topic in said.responses for one in topic.partition_responses
        ]
        for name, one in answers:
            if one.error_code == ErrorCode.NONE:
                left.pop((name, one.index), None)
        for name, one in answers:
            if (name, one.index) in left:
                check(one.error_code, f"partition {one.index} of topic {name}", one.error_message)
        for topic, partition in left.keys() & set(places):
            silent = f"partition {partition} of topic {topic}: the broker's answer leaves it out"
            raise Refused(silent, "NONE")


class Producer:
    """Appends batches under one producer id; for one thread."""

    def __init__(self, router: Router, codec: Codec = Codec.NONE) -> None:
        self._router = router
        self._sender = BatchSender(router, codec)
        self._identity: tuple[int, int] | None = None
        self.is_spent = False

    def send(self, records: Mapping[Place, EncodedRecords]) -> None:
        """Append one batch to each partition; all are acknowledged on return.

        Raises what the client's other requests raise; some batches may have been appended then.
        """
        assert not self.is_spent, "a failed producer cannot be reused"
        self.is_spent = True
        if self._identity is None:
            fresh = new_producer(self._router)
            self._identity = fresh.producer_id, fresh.producer_epoch
        self._sender.send(self._identity, records)
        self.is_spent = False
