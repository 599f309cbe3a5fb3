"""From a frame to its response: one file in `handlers` serves each API."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from kafkaesque.errors import MalformedFrame
from kafkaesque.server import handlers
from kafkaesque.server.edge import api_versions
from kafkaesque.server.edge.produce_fast_path import Lane, lane_of
from kafkaesque.server.handlers import produce
from kafkaesque.server.requests import coroutine_runner
from kafkaesque.server.requests.coroutine_runner import Awaited
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.server.requests.session import Session
from kafkaesque.types import Buffer
from kafkaesque.wire.apis import APIS, Messages, modules_of
from kafkaesque.wire.codec import encode_parts, lenient_decoder
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
from kafkaesque.wire.messages.produce import ProduceRequest

Handler: TypeAlias = Callable[[Any, int, Session], Coroutine[Any, Any, Any]]

API_VERSIONS = api_of(ApiVersionsRequest)


def _handlers() -> Iterator[tuple[int, Handler]]:
    for module in modules_of(handlers):
        request = module.handle.__annotations__["request"]
        yield api_of(request).key, module.handle


HANDLERS: Mapping[int, Handler] = dict(_handlers())
"""By API key: each file in `handlers` has a `handle`, whose request type selects the API."""

SERVED: Mapping[int, Messages] = {
    key: row for key, row in APIS.items() if key in HANDLERS or row.api is API_VERSIONS
}
"""The APIs that clients may call. ApiVersions is answered here, because it reports this table."""


class _Route(NamedTuple):
    """Everything about one API in one version."""

    handle: Handler
    read: Callable[[memoryview, int], Any]
    version: int
    header_version: int
    answer_header_version: int


_routes: dict[tuple[int, int], _Route] = {}
"""Routes used so far; at most one per API and version."""


class Requests:
    """The requests of one connection, started in the order of arrival."""

    __slots__ = ("_lane", "_session", "_topic", "_turn")

    def __init__(self, session: Session, turn: Turn) -> None:
        self._session = session
        self._turn = turn
        self._lane: Lane | None = None
        self._topic: object = None
        """The topics of the last Produce request: a repeat may use a lane."""

    def begin(self, data: memoryview) -> list[Buffer] | Awaited[list[Buffer]]:
        """Start one request and return its response or a pending one; empty if none is due.

        Raises MalformedFrame for an invalid or unserved request: the connection must then be
        closed.
        """
        if self._lane is not None:
            passing = self._lane.begin(data)
            if passing is not None:
                return passing
        named = request_key(data)
        route = _routes.get(named)
        if route is None:
            key, version = named
            if key == API_VERSIONS.key:
                header_version = request_header_version(API_VERSIONS, version)
                header = decode_request_header(data, header_version)[0]
                return _answer_api_versions(header, self._session)
            route = _routes[named] = _route(key, version)
        header, start = decode_request_header(data, route.header_version)
        request = route.read(data, start)
        session = self._session.named(header.client_id)
        finish = partial(_answer, route, header.correlation_id)
        if isinstance(request, ProduceRequest):
            begun = produce.begin(request, route.version, session, finish)
            self._find_lane(data, start, request, route, session)
            return begun
        return coroutine_runner.begin(
            route.handle(request, route.version, session), self._turn, finish
        )

    def lost(self) -> None:
        """Tell those who keep something for this connection that it is lost."""
        for callback in tuple(self._session.when_lost.values()):
            callback()
        self._session.when_lost.clear()

    def _find_lane(
        self,
        data: memoryview,
        start: int,
        request: ProduceRequest,
        route: "_Route",
        session: Session,
    ) -> None:
        """Set up a lane for the next request if this one has the same topics as the last."""
        topic = [(one.topic_id, one.name) for one in request.topic_data]
        if topic == self._topic:
            answer = partial(_answer, route)
            self._lane = lane_of(data, start, request, route.version, session, answer)
        self._topic = topic


def _route(key: int, version: int) -> _Route:
    if key not in HANDLERS:
        raise MalformedFrame(f"API {key} is not served here")
    messages = APIS[key]
    api = messages.api
    if not api.serves(version):
        raise MalformedFrame(f"{api.name} is not served in version {version}")
    return _Route(
        HANDLERS[key],
        lenient_decoder(messages.request, version),
        version,
        request_header_version(api, version),
        response_header_version(api, version),
    )


def _answer(route: _Route, correlation_id: int, body: object) -> list[Buffer]:
    if body is None:
        return []
    head = encode_response_header(correlation_id, route.answer_header_version)
    return frame([head, *encode_parts(body, route.version)])


def _answer_api_versions(header: RequestHeader, session: Session) -> list[Buffer]:
    """Answer an unknown version in version 0, which every client can read."""
    served = [row.api for row in SERVED.values()]
    if API_VERSIONS.serves(header.version):
        body, version = api_versions.answer(served, session.broker), header.version
    else:
        error = ErrorCode.UNSUPPORTED_VERSION
        body = api_versions.answer([API_VERSIONS], session.broker, error)
        version = 0
    head = encode_response_header(header.correlation_id, 0)
    return frame([head, *encode_parts(body, version)])
