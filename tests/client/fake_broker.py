"""A broker that answers from a table of requests and answers, on a real socket.

An answer is a message, or a function of the request, or HANG_UP. Requests are kept in `asked`.
ApiVersions, Metadata, DescribeCluster and FindCoordinator have default answers unless the
table says otherwise; the cluster is this broker, number 1, with the given topics and others.
"""

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeAlias

from kafkaesque.wire.apis import APIS
from kafkaesque.wire.codec import decode, encode_parts
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.frame import FrameSplitter, frame
from kafkaesque.wire.header import (
    decode_request_header,
    encode_response_header,
    request_header_version,
    request_key,
    response_header_version,
)
from kafkaesque.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafkaesque.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkaesque.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

HANG_UP = object()
NODE = 1

Reply: TypeAlias = Callable[[Any], object] | object
Versions: TypeAlias = Mapping[int, tuple[int, int]]

ALL_VERSIONS: Versions = {key: (row.api.first, row.api.last) for key, row in APIS.items()}


class FakeBroker:
    """Listens on a free port while it is entered."""

    def __init__(
        self,
        replies: Mapping[type[Any], Reply] | None = None,
        *,
        topics: Mapping[str, int] | None = None,
        versions: Versions = ALL_VERSIONS,
        others: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.asked: list[tuple[Any, int]] = []
        self.leader = NODE
        self.fenced: set[int] = set()
        self.replies = dict(replies or {})
        self._topics = dict(topics or {})
        self._versions = versions
        self._others = list(others)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []

    @property
    def bootstrap(self) -> str:
        """The bootstrap address for clients."""
        return f"127.0.0.1:{self.port}"

    def requests(self, cls: type[Any]) -> list[Any]:
        """Return the requests of one kind."""
        return [request for request, _ in self.asked if isinstance(request, cls)]

    def versions(self, cls: type[Any]) -> list[int]:
        """Return the versions of these requests."""
        return [version for request, version in self.asked if isinstance(request, cls)]

    def __enter__(self) -> "FakeBroker":
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for stream in self._sockets:
            _hang_up(stream)
        for thread in self._threads:
            thread.join()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(stream)
            self._start(self._serve, stream)

    def _serve(self, stream: socket.socket) -> None:
        splitter = FrameSplitter(1 << 20)
        with stream:
            while True:
                try:
                    data = stream.recv(1 << 16)
                except OSError:
                    return
                if not data:
                    return
                for request in splitter.feed(data):
                    answer = self._answer(request)
                    if answer is None:
                        _hang_up(stream)
                        return
                    try:
                        stream.sendall(answer)
                    except OSError:
                        return  # the client has gone

    def _answer(self, data: memoryview) -> bytes | None:
        key, version = request_key(data)
        api = APIS[key].api
        header, start = decode_request_header(data, request_header_version(api, version))
        is_too_new = key == 18 and version > self._versions[18][1]
        if is_too_new:
            self.asked.append((ApiVersionsRequest(), version))
            body: object = self._api_versions(ErrorCode.UNSUPPORTED_VERSION)
            version = 0
        else:
            request = decode(APIS[key].request, version, data, start)
            self.asked.append((request, version))
            body = self._body(request)
        if body is HANG_UP:
            return None
        head = encode_response_header(header.correlation_id, response_header_version(api, version))
        return b"".join(bytes(part) for part in frame([head, *encode_parts(body, version)]))

    def _body(self, request: Any) -> object:
        reply = self.replies.get(type(request))
        if reply is not None:
            return reply(request) if callable(reply) else reply
        match request:
            case ApiVersionsRequest():
                return self._api_versions(ErrorCode.NONE)
            case MetadataRequest():
                return self._metadata(request)
            case DescribeClusterRequest():
                return self._cluster()
            case FindCoordinatorRequest():
                return self._coordinator(request)
            case _:
                return HANG_UP

    def _api_versions(self, code: ErrorCode) -> ApiVersionsResponse:
        rows = [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in self._versions.items()
        ]
        return ApiVersionsResponse(error_code=code, api_keys=tuple(rows))

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = self._topics if request.topics is None else [t.name for t in request.topics]
        me = (NODE, self.port)
        return MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(node_id=node, host="127.0.0.1", port=port)
                for node, port in (me, *self._others)
            ),
            cluster_id="fake",
            controller_id=NODE,
            topics=tuple(self._topic(name or "") for name in names),
        )

    def _cluster(self) -> DescribeClusterResponse:
        rows = [
            DescribeClusterBroker(
                broker_id=node, host="127.0.0.1", port=port, is_fenced=node in self.fenced
            )
            for node, port in ((NODE, self.port), *self._others)
        ]
        return DescribeClusterResponse(error_code=0, cluster_id="fake", brokers=tuple(rows))

    def _topic(self, name: str) -> MetadataResponseTopic:
        is_known = name in self._topics
        partition = [
            MetadataResponsePartition(
                error_code=ErrorCode.NONE,
                partition_index=index,
                leader_id=self.leader,
                replica_nodes=(NODE,),
                isr_nodes=(NODE,),
            )
            for index in range(self._topics.get(name, 0))
        ]
        code = ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponseTopic(error_code=code, name=name, partitions=tuple(partition))

    def _coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        row = Coordinator(
            key=request.key,
            node_id=NODE,
            host="127.0.0.1",
            port=self.port,
            error_code=ErrorCode.NONE,
            error_message=None,
        )
        return FindCoordinatorResponse(
            coordinators=(row,), node_id=NODE, host="127.0.0.1", port=self.port
        )


def one_after_another(*replies: Reply) -> Callable[[Any], object]:
    """Return a reply that gives each of these in turn, and then the last one forever."""
    left = list(replies)

    def reply(request: Any) -> object:
        now = left.pop(0) if len(left) > 1 else left[0]
        return now(request) if callable(now) else now

    return reply


def _hang_up(stream: socket.socket) -> None:
    try:
        stream.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
