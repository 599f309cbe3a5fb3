"""DeleteTopics: deletes topics."""

from typing import Annotated

from kafkaesque.wire.kinds import NO_UUID, Int16, Int32, NullableSince, Since, Until, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=20, name="DeleteTopics", first=1, last=6, flexible_since=4)


@struct
class DeleteTopicState:
    """One of `topics` of DeleteTopicsRequest."""

    name: str | None = None
    topic_id: Uuid


@message(API)
class DeleteTopicsRequest:
    """A client deletes topics."""

    topics: Annotated[tuple[DeleteTopicState, ...], Since(6)] = ()
    topic_names: Annotated[tuple[str, ...], Until(5)] = ()
    timeout_ms: Int32


@struct
class DeletableTopicResult:
    """One of `responses` of DeleteTopicsResponse."""

    name: Annotated[str | None, NullableSince(6)]
    topic_id: Annotated[Uuid, Since(6)] = NO_UUID
    error_code: Int16
    error_message: Annotated[str | None, Since(5)] = None


@message(API)
class DeleteTopicsResponse:
    """The broker says which topics were deleted."""

    throttle_time_ms: Int32 = 0
    responses: tuple[DeletableTopicResult, ...]
