"""A group's positions: the committed offsets of the Kafka group with the same name."""

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
"""How long to wait for a coordinator: a failed one is replaced in a second or two."""

LOOK_AGAIN_SECONDS = 0.02


async def patiently(ask: Callable[[], Awaitable[R]]) -> R:
    """Call a coordinator, with retries while it is being created or moved.

    Raises the last LinkError or NotNow, and any permanent error at once.
    """
    loop = asyncio.get_running_loop()
    late_s = loop.time() + PATIENCE_SECONDS
    while True:  # ends at the deadline
        try:
            return await ask()
        except (LinkError, NotNow):
            if loop.time() >= late_s:
                raise
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def committed(
    channel: Channel, group: str, place: TopicPlace, partitions: Sequence[int]
) -> dict[int, Offset]:
    """Return the group's position in each partition that has one.

    Raises ApiNotServed if the broker keeps no positions, BadCommand if they cannot be read, NotNow
    if the coordinator is being created, as for the very first group.
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
    """Look up the group's coordinator, which creates one; raises like `committed`.

    Its location does not matter here: the channel finds it.
    """
    request = FindCoordinatorRequest(key=group, coordinator_keys=(group,))
    (found,) = (await channel.call(request, FindCoordinatorResponse)).coordinators
    if found.error_code != ErrorCode.NONE:
        raise refusal(found.error_code)


async def advance(
    channel: Channel, group: str, place: TopicPlace, positions: Mapping[int, Offset]
) -> None:
    """Commit the positions that are ahead of the committed ones; raises like `commit`.

    Two clients of a group may read the same partition at two brokers: the slower one must not set
    the group back.
    """
    kept = await committed(channel, group, place, list(positions))
    ahead = {p: offset for p, offset in positions.items() if offset > kept.get(p, -1)}
    if ahead:
        await commit(channel, group, place, ahead)


async def commit(
    channel: Channel, group: str, place: TopicPlace, positions: Mapping[int, Offset]
) -> None:
    """Commit the group's positions; raises BadCommand if refused, NotNow if that is transient."""
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
                reason = f"the group's position cannot be committed: {sentence(code)}"
                raise refusal(code, reason)
