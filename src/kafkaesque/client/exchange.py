"""One connection's requests and responses, without the connection.

Bytes to send come out, received bytes go in; the driver moves them. The first request is
ApiVersions, in our newest version. A broker that does not know that version answers in version 0,
with an error and the versions that it does know, and is asked once more. Afterwards every request
uses the newest version that both sides speak.

    asking ── answer ──> ready
      └── unsupported version ──> asking once more ── answer ──> ready

Responses come in the order of the requests; anything else ends the connection.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from kafkaesque import __version__
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import NotServed, Refused
from kafkaesque.errors import MalformedFrame
from kafkaesque.types import Buffer
from kafkaesque.wire.codec import decode, encode_parts
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.errors import UnencodableMessage
from kafkaesque.wire.frame import FrameSplitter, frame
from kafkaesque.wire.header import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    request_header_version,
    response_header_version,
)
from kafkaesque.wire.message import Api, api_of
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkaesque.wire.messages.produce import ProduceRequest

_API_VERSIONS = api_of(ApiVersionsRequest)
_CORRELATION_END = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The broker's response to the request of this number."""

    number: int
    message: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    number: int
    api: Api
    version: int
    response: type[Any]


class _State(Enum):
    ASKING = auto()
    ASKING_AGAIN = auto()
    READY = auto()


class Exchange:
    """The protocol side of one connection; `begin` first, then `receive` until `is_ready`.

    Requests may then be sent without waiting for earlier responses. After an error from `receive`
    the position in the stream is lost: close the connection.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._splitter = FrameSplitter(config.frame_bytes_max)
        self._asked: deque[_Asked] = deque()
        self._next = 0
        self._state = _State.ASKING
        self._served: dict[int, tuple[int, int]] = {}

    @property
    def is_ready(self) -> bool:
        """Whether the broker has reported its versions."""
        return self._state is _State.READY

    @property
    def in_flight(self) -> int:
        """Unanswered requests."""
        return len(self._asked)

    def begin(self) -> list[Buffer]:
        """Return the first bytes of every connection."""
        return self._ask_versions(_API_VERSIONS.last)

    def send(
        self, request: Any, response: type[Any], *, version_max: int | None = None
    ) -> tuple[int, list[Buffer]]:
        """Return a request's number and bytes; the answer will be of type `response`.

        Raises NotServed if the broker speaks no version of the API that we know.
        """
        assert self.is_ready, "requests must wait for the versions"
        assert len(self._asked) < self._config.in_flight_max, "the driver waits for answers"
        if isinstance(request, ProduceRequest) and request.acks == 0:
            raise UnencodableMessage("a produce request with acks=0 has no answer to wait for")
        api = api_of(type(request))
        return self._send(request, response, self.version_of(api, version_max))

    def version_of(self, api: Api, version_max: int | None = None) -> int:
        """Return the newest version that both sides speak, at most `version_max`."""
        served = self._served.get(api.key)
        if served is None:
            raise NotServed(f"the broker does not serve {api.name}")
        newest = min(served[1], api.last, api.last if version_max is None else version_max)
        if newest < max(served[0], api.first):
            raise NotServed(
                f"the broker serves {api.name} in versions {served[0]} to {served[1]}, "
                f"but we speak only {api.first} to {api.last}"
            )
        return newest

    def receive(self, data: Buffer) -> tuple[list[Answer], list[Buffer]]:
        """Take received bytes; return the complete answers, and bytes to send at once.

        Raises MalformedFrame for bytes that are not an answer to a request.
        """
        answers: list[Answer] = []
        out: list[Buffer] = []
        for body in self._splitter.feed(data):
            if not self._asked:
                raise MalformedFrame("the broker sent a response without a request")
            asked = self._asked.popleft()
            if self._state is _State.READY:
                answers.append(Answer(number=asked.number, message=_read(asked, body)))
            else:
                out += self._learn(asked, body)
        return answers, out

    def _learn(self, asked: _Asked, body: memoryview) -> list[Buffer]:
        start = _body_start(asked, body)
        code = int.from_bytes(body[start : start + 2], "big", signed=True)
        is_too_new = code == ErrorCode.UNSUPPORTED_VERSION
        said = decode(ApiVersionsResponse, 0 if is_too_new else asked.version, body, start)
        served = {one.api_key: (one.min_version, one.max_version) for one in said.api_keys}
        if is_too_new and self._state is _State.ASKING:
            self._state = _State.ASKING_AGAIN
            _, newest = served.get(_API_VERSIONS.key, (0, 0))
            return self._ask_versions(max(0, min(newest, _API_VERSIONS.last - 1)))
        if code != ErrorCode.NONE:
            raise Refused(f"the broker does not list its versions: error {code}", str(code))
        self._served = served
        self._state = _State.READY
        return []

    def _ask_versions(self, version: int) -> list[Buffer]:
        request = ApiVersionsRequest(
            client_software_name="kafkaesque", client_software_version=_software_version()
        )
        return self._send(request, ApiVersionsResponse, version)[1]

    def _send(self, request: Any, response: type[Any], version: int) -> tuple[int, list[Buffer]]:
        api = api_of(type(request))
        number = self._next
        header = RequestHeader(
            key=api.key,
            version=version,
            correlation_id=number,
            client_id=self._config.client_id,
        )
        head = encode_request_header(header, request_header_version(api, version))
        parts = frame([head, *encode_parts(request, version)])
        self._asked.append(_Asked(number=number, api=api, version=version, response=response))
        self._next = (number + 1) % _CORRELATION_END
        return number, parts


def _read(asked: _Asked, body: memoryview) -> Any:
    return decode(asked.response, asked.version, body, _body_start(asked, body))


def _body_start(asked: _Asked, body: memoryview) -> int:
    version = response_header_version(asked.api, asked.version)
    number, start = decode_response_header(body, version)
    if number != asked.number:
        raise MalformedFrame(f"the broker answered request {number} instead of {asked.number}")
    return start


def _software_version() -> str:
    """Return our version in the characters that brokers allow (KIP-511)."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "-" for c in __version__)
