"""DeleteShareGroupOffsets: deletes a share group's offsets of topics."""

from kafkaesque.wire.kinds import Int16, Int32, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=92, name="DeleteShareGroupOffsets", first=0, last=0, flexible_since=0)


@struct
class DeleteShareGroupOffsetsRequestTopic:
    """One of `topics` of DeleteShareGroupOffsetsRequest."""

    topic_name: str


@message(API)
class DeleteShareGroupOffsetsRequest:
    """A client deletes a share group's offsets of topics."""

    group_id: str
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...]


@struct
class DeleteShareGroupOffsetsResponseTopic:
    """One of `responses` of DeleteShareGroupOffsetsResponse."""

    topic_name: str
    topic_id: Uuid
    error_code: Int16
    error_message: str | None = None


@message(API)
class DeleteShareGroupOffsetsResponse:
    """The broker says of which topics the offsets were deleted."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...]
