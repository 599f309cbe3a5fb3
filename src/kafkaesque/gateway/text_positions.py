"""How far a group has come: kept as the committed offsets of the Kafka group of the same name."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from kafkaesque.client.channel import Channel
from kafkaesque.errors import LinkError
from kafkaesque.gateway.text_errors import NotNow, refusal, sentence
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

R = TypeVar("R")

PATIENCE_SECONDS = 5.0
"""A coordinator is waited for as long as this: one that died is replaced in a second or two."""

LOOK_AGAIN_SECONDS = 0.02


async def patiently(ask: Callable[[], Awaitable[R]]) -> R:
    """Ask a coordinator, and again for a while if it is just coming to be or moving.

    Raises what it raised last, LinkError or NotNow, and at once whatever does not pass.
    """
    loop = asyncio.get_running_loop()
    late_s = loop.time() + PATIENCE_SECONDS
    while True:  # ends when it is late
        try:
            return await ask()
        except (LinkError, NotNow):
            if loop.time() >= late_s:
                raise
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def committed(
    channel: Channel, group: str, place: TopicPlace, partitions: Sequence[int]
) -> dict[int, Offset]:
    """Return the group's position in each partition where it has one.

    Raises ApiNotServed where positions are not kept, BadCommand where they cannot be had, NotNow if
    the coordinator is just coming to be, as for the first group of all.
    """
    topics = OffsetFetchRequestTopics(
        topic_id=place.topic_id, name=place.name, partition_indexes=tuple(partitions)
    )
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=group, topics=(topics,)),)
    )
    await _find_coordinator(channel, group)
    (found,) = (await channel.call(request, OffsetFetchResponse)).groups
    if found.error_code != ErrorCode.NONE:
        raise refusal(found.error_code)
    return {
        partition.partition_index: partition.committed_offset
        for topic in found.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE and partition.committed_offset >= 0
    }


async def _find_coordinator(channel: Channel, group: str) -> None:
    """Ask for the group's coordinator, which makes one come to be; raises what `committed` does.

    Where it is does not matter here: the channel leads to it.
    """
    request = FindCoordinatorRequest(key=group, coordinator_keys=(group,))
    (found,) = (await channel.call(request, FindCoordinatorResponse)).coordinators
    if found.error_code != ErrorCode.NONE:
        raise refusal(found.error_code)


async def advance(
    channel: Channel, group: str, place: TopicPlace, positions: Mapping[int, Offset]
) -> None:
    """Keep those positions that are further than what is kept; raises what `commit` raises.

    Two clients of a group may read the same partition at two brokers: so whoever is behind does not
    send the group back to what the other has seen.
    """
    kept = await committed(channel, group, place, list(positions))
    ahead = {p: offset for p, offset in positions.items() if offset > kept.get(p, -1)}
    if ahead:
        await commit(channel, group, place, ahead)


async def commit(
    channel: Channel, group: str, place: TopicPlace, positions: Mapping[int, Offset]
) -> None:
    """Keep the group's positions; raises BadCommand if they are refused, NotNow if that passes."""
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
                code = partition.error_code
                reason = f"the position of the group cannot be kept: {sentence(code)}"
                raise refusal(code, reason)
