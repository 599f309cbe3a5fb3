"""From a frame to its answer: one table says which handler serves which API."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from kafkaesque.errors import MalformedFrame
from kafkaesque.server.handlers import (
    api_versions,
    create_topics,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from kafkaesque.server.session import Session
from kafkaesque.types import Buffer
from kafkaesque.wire.apis import APIS
from kafkaesque.wire.codec import decode, encode_parts
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.frame import frame
from kafkaesque.wire.header import (
    RequestHeader,
    decode_request_header,
    encode_response_header,
    request_header_version,
    request_key,
    response_header_version,
)
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest
from kafkaesque.wire.messages.create_topics import CreateTopicsRequest
from kafkaesque.wire.messages.fetch import FetchRequest
from kafkaesque.wire.messages.init_producer_id import InitProducerIdRequest
from kafkaesque.wire.messages.list_offsets import ListOffsetsRequest
from kafkaesque.wire.messages.metadata import MetadataRequest
from kafkaesque.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkaesque.wire.messages.produce import ProduceRequest

Handler: TypeAlias = Callable[[Any, int, Session], Awaitable[Any]]

API_VERSIONS = api_of(ApiVersionsRequest)

_HANDLERS: Mapping[type[Any], Handler] = {
    ProduceRequest: produce.handle,
    FetchRequest: fetch.handle,
    ListOffsetsRequest: list_offsets.handle,
    OffsetForLeaderEpochRequest: offset_for_leader_epoch.handle,
    MetadataRequest: metadata.handle,
    CreateTopicsRequest: create_topics.handle,
    InitProducerIdRequest: init_producer_id.handle,
}
HANDLERS: Mapping[int, Handler] = {api_of(cls).key: handle for cls, handle in _HANDLERS.items()}
"""By the key of the API; ApiVersions is answered here, because it tells of this table."""


def begin(data: memoryview, session: Session) -> Awaitable[list[Buffer]]:
    """Take one request and return what will be its answer; an empty one means none is due.

    Raises MalformedFrame for what is no request, or one that nobody here can answer: then the
    connection must be closed.
    """
    key, version = request_key(data)
    messages = APIS.get(key)
    if messages is None or (key not in HANDLERS and key != API_VERSIONS.key):
        raise MalformedFrame(f"API {key} is not served here")
    api = messages.api
    header, start = decode_request_header(data, request_header_version(api, version))
    if key == API_VERSIONS.key:
        return _done(_answer_api_versions(header))
    if not api.serves(version):
        raise MalformedFrame(f"{api.name} is not served in version {version}")
    request = decode(messages.request, version, data, start)
    return _answer(header, HANDLERS[key](request, version, session))


async def _answer(header: RequestHeader, response: Awaitable[Any]) -> list[Buffer]:
    body = await response
    if body is None:
        return []
    api = APIS[header.key].api
    head = encode_response_header(
        header.correlation_id, response_header_version(api, header.version)
    )
    return frame([head, *encode_parts(body, header.version)])


async def _done(parts: list[Buffer]) -> list[Buffer]:
    return parts


def _answer_api_versions(header: RequestHeader) -> list[Buffer]:
    """A version that we do not know is answered in version 0, which every client can read."""
    served = [APIS[key].api for key in HANDLERS] + [API_VERSIONS]
    if API_VERSIONS.serves(header.version):
        body, version = api_versions.answer(served), header.version
    else:
        body = api_versions.answer([API_VERSIONS], ErrorCode.UNSUPPORTED_VERSION)
        version = 0
    head = encode_response_header(header.correlation_id, 0)
    return frame([head, *encode_parts(body, version)])
