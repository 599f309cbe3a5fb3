"""How far a group has come: kept as the committed offsets of the Kafka group of the same name."""

import asyncio
from collections.abc import Mapping, Sequence

from kafkaesque.client.channel import Channel
from kafkaesque.errors import BadCommand
from kafkaesque.gateway.text_errors import sentence
from kafkaesque.gateway.text_topics import TopicPlace
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

LOOKS_MAX = 100
LOOK_AGAIN_SECONDS = 0.02
"""A coordinator is waited for, two seconds in all."""

_COMING_TO_BE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


async def committed(
    channel: Channel, group: str, place: TopicPlace, partitions: Sequence[int]
) -> dict[int, Offset]:
    """Return the group's position in each partition where it has one.

    Raises ApiNotServed where positions are not kept, BadCommand where they cannot be had now. A
    coordinator that is just coming to be, as for the first group of all, is waited for.
    """
    topics = OffsetFetchRequestTopics(
        topic_id=place.topic_id, name=place.name, partition_indexes=tuple(partitions)
    )
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=group, topics=(topics,)),)
    )
    for _ in range(LOOKS_MAX):
        code = await _find_coordinator(channel, group)
        if code == ErrorCode.NONE:
            (found,) = (await channel.call(request, OffsetFetchResponse)).groups
            code = found.error_code
        if code not in _COMING_TO_BE:
            break
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    if code != ErrorCode.NONE:
        raise BadCommand(sentence(code))
    return {
        partition.partition_index: partition.committed_offset
        for topic in found.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE and partition.committed_offset >= 0
    }


async def _find_coordinator(channel: Channel, group: str) -> int:
    """Ask for the group's coordinator, which makes one come to be; return the error code.

    Where it is does not matter here: the channel leads to it.
    """
    request = FindCoordinatorRequest(key=group, coordinator_keys=(group,))
    (found,) = (await channel.call(request, FindCoordinatorResponse)).coordinators
    return found.error_code


async def commit(
    channel: Channel, group: str, place: TopicPlace, positions: Mapping[int, Offset]
) -> None:
    """Keep the group's positions; raises BadCommand if they are refused."""
    request = OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=(
            OffsetCommitRequestTopic(
                topic_id=place.topic_id,
                name=place.name,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=""
                    )
                    for partition, offset in positions.items()
                ),
            ),
        ),
    )
    answer = await channel.call(request, OffsetCommitResponse)
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code != ErrorCode.NONE:
                reason = sentence(partition.error_code)
                raise BadCommand(f"the position of the group cannot be kept: {reason}")
