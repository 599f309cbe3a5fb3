"""AlterShareGroupOffsets: lets a share group without members begin again elsewhere."""

from collections.abc import Mapping, Set

from kafkaesque.errors import KafkaesqueError, UnknownTopic
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.groups.share_commands import CreateShareGroup
from kafkaesque.server.admin.resources import check_not_in, repeated_in
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.answers.partition_ends import Began, Named, ends_of, terms_of
from kafkaesque.server.answers.share_requests import check_is_served
from kafkaesque.server.answers.share_state import set_start, topics_named
from kafkaesque.server.requests.callback_waits import together
from kafkaesque.server.requests.errors import ShareStateAway, StartOutOfRange, code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)


async def handle(
    request: AlterShareGroupOffsetsRequest, version: int, session: Session
) -> AlterShareGroupOffsetsResponse:
    """Set each start independently; a group that does not exist is created, as in Kafka."""
    try:
        check_is_served(session)
        await ask_group(session, request.group_id, CreateShareGroup(group=request.group_id))
        known = await topics_named(session, (topic.topic_name for topic in request.topics))
    except KafkaesqueError as error:
        return AlterShareGroupOffsetsResponse(
            error_code=code_of(error), error_message=message_of(error), responses=()
        )
    altering = _Altering(request, known, session)
    altering.ends = await ends_of(session, altering.existing())
    altering.terms = await terms_of(session, altering.existing())
    topics = [await altering.topic(topic) for topic in request.topics]
    return AlterShareGroupOffsetsResponse(error_code=ErrorCode.NONE, responses=tuple(topics))


class _Altering:
    """One request, with what must be known of the partitions that it names."""

    def __init__(
        self, request: AlterShareGroupOffsetsRequest, known: Mapping[str, Topic], session: Session
    ) -> None:
        self.ends: Mapping[Named, Offset] = {}
        self.terms: Mapping[Named, Began] = {}
        self._request = request
        self._known = known
        self._session = session
        self._repeated: Set[object] = repeated_in(
            (topic.topic_name, one.partition_index)
            for topic in request.topics
            for one in topic.partitions
        )

    def existing(self) -> list[tuple[Topic, int]]:
        """Return the partitions that exist."""
        return [
            (known, one.partition_index)
            for topic in self._request.topics
            if (known := self._known.get(topic.topic_name)) is not None
            for one in topic.partitions
            if 0 <= one.partition_index < known.partitions
        ]

    async def topic(
        self, topic: AlterShareGroupOffsetsRequestTopic
    ) -> AlterShareGroupOffsetsResponseTopic:
        """Set the starts in one topic."""
        known = self._known.get(topic.topic_name)
        partitions = await together(
            self._partition(topic.topic_name, one) for one in topic.partitions
        )
        return AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            topic_id=NO_UUID if known is None else known.topic_id,
            partitions=tuple(partitions),
        )

    async def _partition(
        self, name: str, one: AlterShareGroupOffsetsRequestPartition
    ) -> AlterShareGroupOffsetsResponsePartition:
        try:
            await self._set(name, one.partition_index, one.start_offset)
        except KafkaesqueError as error:
            return AlterShareGroupOffsetsResponsePartition(
                partition_index=one.partition_index,
                error_code=code_of(error),
                error_message=message_of(error),
            )
        return AlterShareGroupOffsetsResponsePartition(
            partition_index=one.partition_index, error_code=ErrorCode.NONE
        )

    async def _set(self, name: str, index: int, offset: Offset) -> None:
        topic = self._known.get(name)
        if topic is None or not 0 <= index < topic.partitions:
            raise UnknownTopic(f"there is no partition {index} of topic {name}")
        check_not_in(self._repeated, (name, index), "partition")
        end, began = self.ends.get((name, index)), self.terms.get((name, index))
        if end is None or began is None:
            raise ShareStateAway(f"partition {index} of {name} has no leader that answers")
        if not 0 <= offset <= end:
            raise StartOutOfRange(f"offset {offset} of partition {index} is not in [0, {end}]")
        await set_start(self._session, self._request.group_id, topic, index, offset, began)
