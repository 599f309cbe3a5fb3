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
        edge, {"/health": partial(_health, trouble), "/metrics": partial(exposition, edge)}
    )


def _health(trouble: Callable[[], str | None]) -> Page:
    sentence = trouble()
    if sentence is None:
        return Page(content=b"ok\n")
    return Page(status=HTTPStatus.SERVICE_UNAVAILABLE, content=f"{sentence}\n".encode())
