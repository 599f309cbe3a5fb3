"""The pages that a broker shows over HTTP.

Imported when the first one is asked for: a broker that nobody probes starts without HTTP.
"""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from kafkaesque.server.edge import Edge
from kafkaesque.server.http import HttpConnection, Page
from kafkaesque.server.metrics import exposition


def http_connection(edge: Edge, trouble: Callable[[], str | None]) -> HttpConnection:
    """Return the protocol of one client; `trouble` says in a sentence why we do not serve."""
    return HttpConnection(
        edge, {"/health": partial(_health, edge, trouble), "/metrics": partial(exposition, edge)}
    )


def _health(edge: Edge, trouble: Callable[[], str | None]) -> Page:
    """Tell load balancers whether to send clients here, and people what is wrong, line by line."""
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
