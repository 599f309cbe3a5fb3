"""The pages that a broker serves over HTTP.

Imported at the first HTTP request: a broker that is never probed starts without HTTP.
"""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.http.http import HttpConnection, Page
from kafkaesque.server.http.metrics import exposition


def http_connection(edge: Edge, trouble: Callable[[], str | None]) -> HttpConnection:
    """Return the protocol of one client; `trouble` returns why this node does not serve."""
    pages: dict[str, Callable[[], Page]] = {
        "/health": partial(_health, edge, trouble),
        "/health/live": _live,
        "/health/ready": partial(_ready, edge, trouble),
        "/metrics": partial(exposition, edge),
    }
    return HttpConnection(edge, pages)


def _live() -> Page:
    """Tell supervisors that the process runs: a restart for anything less only loses time."""
    return Page(content=b"ok\n")


def _ready(edge: Edge, trouble: Callable[[], str | None]) -> Page:
    """Tell supervisors whether clients are served here, and if not, why."""
    serious = (one.text for one in edge.watch.problems if one.kind.concerns_all)
    sentence = trouble() or next(serious, None)
    if sentence is None:
        return Page(content=b"ok\n")
    return Page(status=HTTPStatus.SERVICE_UNAVAILABLE, content=f"{sentence}\n".encode())


def _health(edge: Edge, trouble: Callable[[], str | None]) -> Page:
    """Tell load balancers whether to send clients here, and list problems line by line."""
    sentence = trouble()
    if sentence is not None:
        return Page(status=HTTPStatus.SERVICE_UNAVAILABLE, content=f"{sentence}\n".encode())
    found = edge.watch.problems
    if not found:
        return Page(content=b"ok\n")
    is_useless = any(one.kind.concerns_all for one in found)
    lines = "".join(f"{one.kind.value}: {one.text}\n" for one in found)
    status = HTTPStatus.SERVICE_UNAVAILABLE if is_useless else HTTPStatus.OK
    return Page(status=status, content=lines.encode())
