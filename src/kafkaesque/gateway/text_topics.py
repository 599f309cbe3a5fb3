"""Topics for the text protocol: found, listed and created through the channel."""

import asyncio

from msgspec import Struct

from kafkaesque.client.channel import Channel
from kafkaesque.errors import KafkaesqueError
from kafkaesque.gateway.text_commands import CreateTopic, shown
from kafkaesque.gateway.text_errors import BadCommand, change_sentence, sentence, unknown_outcome
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

TOPIC_CHARS_MAX = 249
LOOKS_MAX = 50
LOOK_AGAIN_SECONDS = 0.02
"""Wait for a topic that is being created, a second in all."""

_BROKERS_CHOICE = -1


class TopicPlace(Struct, frozen=True, kw_only=True):
    """A topic as the broker knows it now; requests use its name or id, depending on the version."""

    name: str
    topic_id: bytes
    partitions: int
    available: tuple[int, ...]
    """The partitions with a leader, for records without a key; all if none has one."""


async def find_topic(channel: Channel, name: str, *, may_create: bool) -> TopicPlace:
    """Return a topic, created if `may_create` and the broker does so.

    Raises BadCommand if there is none.
    """
    _check(name)
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=may_create
    )
    for _ in range(LOOKS_MAX):
        (found,) = (await channel.call(request, MetadataResponse)).topics
        if not _is_opening(found):
            break
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise BadCommand(f"there is no topic {shown(name)}")
    if found.error_code != ErrorCode.NONE:
        raise BadCommand(sentence(found.error_code))
    able = [p.partition_index for p in found.partitions if p.error_code == ErrorCode.NONE]
    count = len(found.partitions)
    return TopicPlace(
        name=name,
        topic_id=found.topic_id,
        partitions=count,
        available=tuple(able or range(count)),
    )


async def list_topics(channel: Channel) -> list[dict[str, str | int]]:
    """Return the name and partition count of every topic except internal ones."""
    answer = await channel.call(MetadataRequest(topics=None), MetadataResponse)
    return [
        {"Topic": topic.name, "Partitions": len(topic.partitions)}
        for topic in sorted(answer.topics, key=lambda topic: topic.name or "")
        if topic.name is not None and not topic.is_internal
    ]


async def create_topic(channel: Channel, command: CreateTopic, timeout_ms: int) -> None:
    """Create a topic; raises BadCommand if that fails or the outcome is unknown."""
    _check(command.topic)
    request = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=command.topic,
                num_partitions=command.partitions or _BROKERS_CHOICE,
                replication_factor=command.replicas or _BROKERS_CHOICE,
                assignments=(),
                configs=(),
            ),
        ),
        timeout_ms=timeout_ms,
    )
    try:
        (result,) = (await channel.call(request, CreateTopicsResponse)).topics
    except KafkaesqueError as error:
        raise BadCommand(unknown_outcome(str(error))) from error
    if result.error_code != ErrorCode.NONE:
        raise BadCommand(change_sentence(result.error_code, result.error_message))


def _is_opening(topic: MetadataResponseTopic) -> bool:
    """Return whether it will be usable soon; lost partitions are not waited for."""
    if topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE:
        return True
    return any(
        partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE and not partition.offline_replicas
        for partition in topic.partitions
    )


def _check(name: str) -> None:
    if len(name) > TOPIC_CHARS_MAX:
        raise BadCommand(f"a topic name may have at most {TOPIC_CHARS_MAX} characters")
