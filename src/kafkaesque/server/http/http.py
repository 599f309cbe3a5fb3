"""A minimal HTTP/1.1 server for probes and Prometheus: requests have no body.

Anything that two programs could read differently is refused: a body, a Transfer-Encoding, a folded
header, a line that does not end in CR LF. Request smuggling relies on these.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from kafkaesque.server.edge.counters import Refusal
from kafkaesque.server.edge.edge import Edge

PLAIN = "text/plain; charset=utf-8"

_END = b"\r\n\r\n"
_REQUEST_LINE = re.compile(r"([A-Z]+) ([!-~]+) HTTP/1\.([01])")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The response to a request."""

    status: HTTPStatus = HTTPStatus.OK
    content: bytes
    content_type: str = PLAIN


Pages = Mapping[str, Callable[[], Page]]
"""The pages by path; each is built on request."""


class BadRequest(Exception):
    """A refused request; its text is the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The head of a request."""

    method: str
    path: str
    is_last: bool
    """Whether to close the connection after the response."""


def parse(head: bytes) -> Request:
    """Parse a request's head, without the empty line after it; raises BadRequest."""
    lines = head.decode("latin-1").split("\r\n")
    found = _REQUEST_LINE.fullmatch(lines[0])
    if found is None:
        raise BadRequest("the request line is malformed")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise BadRequest("a header is malformed")
        name = header[1].lower()
        if name in headers and name in ("host", "content-length", "connection"):
            raise BadRequest(f"the header {name} appears twice")
        headers[name] = header[2]
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        raise BadRequest("requests with a body are not accepted")
    is_new = found[3] == "1"
    if is_new and "host" not in headers:
        raise BadRequest("the header host is missing")
    wish = headers.get("connection", "keep-alive" if is_new else "close").lower()
    return Request(method=found[1], path=found[2].partition("?")[0], is_last=wish != "keep-alive")


class HttpConnection(asyncio.Protocol):
    """Answers one client, one request after the other."""

    def __init__(self, edge: Edge, pages: Pages) -> None:
        self._edge = edge
        self._pages = pages
        self._head = b""
        self._since_ms = edge.doorkeeper.now_ms()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass

    def data_received(self, data: bytes) -> None:
        """Answer a complete head; a client that pipelines is disconnected after the response."""
        if not self._head:
            self._since_ms = self._edge.doorkeeper.now_ms()
        self._head += data
        bytes_max = self._edge.limits.http_head_bytes_max
        head, end, rest = self._head.partition(_END)
        if len(head) > bytes_max:
            text = f"headers of more than {bytes_max} bytes are not accepted"
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)
            return
        if not end:
            return
        self._head = b""
        try:
            request = parse(head)
        except BadRequest as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        is_last = request.is_last or bool(rest)
        self._write(self._page(request), has_content=request.method != "HEAD", is_last=is_last)

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read responses."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Resume reading."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def overdue(self, now_ms: int) -> Refusal | None:
        """Check the deadlines: a short one for a head, a longer one between requests."""
        waited_ms = now_ms - self._since_ms
        if self._head:
            is_late = waited_ms > self._edge.limits.http_head_ms_max
            return Refusal.REQUEST_TIME if is_late else None
        return Refusal.IDLE if waited_ms > self._edge.limits.idle_ms_max else None

    def _page(self, request: Request) -> Page:
        make = self._pages.get(request.path)
        if make is None:
            known = ", ".join(sorted(self._pages))
            return Page(status=HTTPStatus.NOT_FOUND, content=f"the pages are {known}\n".encode())
        if request.method not in ("GET", "HEAD"):
            return Page(
                status=HTTPStatus.METHOD_NOT_ALLOWED, content=b"this can be read with GET only\n"
            )
        return make()

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        peer = self._transport.get_extra_info("peername")
        self._edge.doorkeeper.complain(Refusal.REQUEST, peer, text)
        self._write(Page(status=status, content=f"{text}\n".encode()), is_last=True)

    def _write(self, page: Page, *, has_content: bool = True, is_last: bool) -> None:
        lines = [
            f"HTTP/1.1 {page.status.value} {page.status.phrase}",
            f"Content-Type: {page.content_type}",
            f"Content-Length: {len(page.content)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            f"Connection: {'close' if is_last else 'keep-alive'}",
        ]
        if page.status is HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append("Allow: GET, HEAD")
        head = "\r\n".join(lines).encode() + _END
        answer = head + page.content if has_content else head
        self._edge.counters.sent_bytes += len(answer)
        self._transport.write(answer)
        if is_last:
            self._transport.close()
