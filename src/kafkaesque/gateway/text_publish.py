"""PUBS: messages become records, and are answered when committed.

Queued lines are written together in order, one batch per partition. A batch that is refused because
of one record is retried record by record, which is safe: a refused batch leaves nothing behind. An
unknown outcome is never retried, but reported.
"""

from collections.abc import Mapping, Sequence

from kafkaesque.errors import KafkaesqueError
from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_errors import BadCommand, change_sentence, sentence, unknown_outcome
from kafkaesque.gateway.text_message import HEADER_NAME, Message
from kafkaesque.gateway.text_topics import TopicPlace, find_topic
from kafkaesque.record.build import build_batch
from kafkaesque.record.key_partition import partition_of
from kafkaesque.record.record import Record
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_ACKS_ALL = -1
_REFUSED_FOR_A_RECORD = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD})

Fates = list[str | None]
"""For each message None if committed, else its error message."""


async def publish(desk: TextDesk, topic: str, messages: Sequence[Message]) -> Fates:
    """Publish messages, in order per partition; return the fate of each."""
    try:
        place = await find_topic(desk.channel, topic, may_create=True)
        spread = _spread(desk, place, messages)
    except KafkaesqueError as error:  # nothing was sent: the outcome is known
        return [str(error)] * len(messages)
    fates: Fates = [None] * len(messages)
    try:
        answers = await _produce(desk, place, messages, spread)
        for answer in answers:
            members = spread[answer.index]
            if answer.error_code in _REFUSED_FOR_A_RECORD and len(members) > 1:
                await _one_by_one(desk, place, messages, (answer.index, members), fates)
            else:
                for member in members:
                    fates[member] = _fate(answer)
    except KafkaesqueError as error:
        return [unknown_outcome(str(error))] * len(messages)
    return fates


def _spread(desk: TextDesk, place: TopicPlace, messages: Sequence[Message]) -> dict[int, list[int]]:
    """Return the indexes of the messages for each partition."""
    if place.partitions == 0:
        raise BadCommand("the topic has no partitions")
    spread: dict[int, list[int]] = {}
    for member, message in enumerate(messages):
        if message.key is None:
            partition = desk.next_partition(place.name, place.available)
        else:
            partition = partition_of(message.key, place.partitions)
        spread.setdefault(partition, []).append(member)
    return spread


async def _one_by_one(
    desk: TextDesk,
    place: TopicPlace,
    messages: Sequence[Message],
    share: tuple[int, list[int]],
    fates: Fates,
) -> None:
    partition, members = share
    for member in members:
        (answer,) = await _produce(desk, place, messages, {partition: [member]})
        fates[member] = _fate(answer)


async def _produce(
    desk: TextDesk,
    place: TopicPlace,
    messages: Sequence[Message],
    spread: Mapping[int, list[int]],
) -> tuple[PartitionProduceResponse, ...]:
    now_ms = desk.clock.now_ms()
    request = ProduceRequest(
        acks=_ACKS_ALL,
        timeout_ms=desk.limits.timeout_ms,
        topic_data=(
            TopicProduceData(
                topic_id=place.topic_id,
                name=place.name,
                partition_data=tuple(
                    PartitionProduceData(
                        index=partition,
                        records=build_batch(
                            [
                                _record(messages[member], offset, now_ms)
                                for offset, member in enumerate(members)
                            ]
                        ),
                    )
                    for partition, members in spread.items()
                ),
            ),
        ),
    )
    answer = await desk.channel.call(request, ProduceResponse)
    return answer.responses[0].partition_responses


def _record(message: Message, offset: int, now_ms: int) -> Record:
    headers = () if message.header is None else ((HEADER_NAME, message.header),)
    return Record(
        offset=offset, timestamp_ms=now_ms, key=message.key, value=message.body, headers=headers
    )


def _fate(answer: PartitionProduceResponse) -> str | None:
    if answer.error_code == ErrorCode.NONE:
        return None
    if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and answer.log_start_offset < 0:
        # A broker that lost leadership after an append still reports the first offset; this one
        # refused.
        return sentence(answer.error_code, answer.error_message)
    return change_sentence(answer.error_code, answer.error_message)
