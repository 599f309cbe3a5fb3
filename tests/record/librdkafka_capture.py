"""Just enough of a broker for one librdkafka client: it keeps what is produced, serves one batch.

librdkafka has no call that encodes or decodes a batch, so it is made to do so over a socket: a
producer's batches are taken from its Produce requests, a consumer is fed from a Fetch response.
Versions are pinned low, where all messages have a fixed layout.
"""

import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar

TOPIC = "t"
PRODUCER_ID = 4711

_PRODUCE, _FETCH, _METADATA, _FIND_COORDINATOR, _API_VERSIONS, _INIT_PRODUCER_ID = (
    0,
    1,
    3,
    10,
    18,
    22,
)
_VERSIONS = {
    # To use format 2 and every codec, librdkafka wants to see these ranges, the coordinator too.
    _PRODUCE: (0, 7),
    _FETCH: (0, 10),
    _METADATA: (1, 1),
    _FIND_COORDINATOR: (0, 0),
    _API_VERSIONS: (0, 0),
    _INIT_PRODUCER_ID: (0, 0),
}
_UNSUPPORTED_VERSION = 35


class Stub(socketserver.ThreadingTCPServer):
    """A broker that leads one topic with one partition."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, served: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.served = served
        self.produced: list[bytes] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def stub(served: bytes = b"") -> Iterator[Stub]:
    """Run a stub that serves the batch `served` to consumers."""
    with Stub(served) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Connection(socketserver.StreamRequestHandler):
    server: Stub

    def handle(self) -> None:
        with suppress(ConnectionError):  # clients disconnect as they please
            self._answer_all()

    def _answer_all(self) -> None:
        # Ends when the client disconnects.
        while len(prefix := self.rfile.read(4)) == 4:
            request = self.rfile.read(int.from_bytes(prefix, "big"))
            key, version, correlation = struct.unpack_from(">hhi", request)
            (client_length,) = struct.unpack_from(">h", request, 8)
            answer = self.ANSWERS[key](self, request[10 + client_length :], version)
            message = struct.pack(">i", correlation) + answer
            self.wfile.write(struct.pack(">i", len(message)) + message)

    def _api_versions(self, _: bytes, version: int) -> bytes:
        rows = [struct.pack(">hhh", key, *versions) for key, versions in _VERSIONS.items()]
        error = 0 if version == 0 else _UNSUPPORTED_VERSION
        return struct.pack(">hi", error, len(rows)) + b"".join(rows)

    def _metadata(self, _: bytes, __: int) -> bytes:
        broker = (
            struct.pack(">i", 1) + _string("127.0.0.1") + struct.pack(">ih", self.server.port, -1)
        )
        partition = struct.pack(">hiiiiii", 0, 0, 1, 1, 1, 1, 1)
        topic = struct.pack(">h", 0) + _string(TOPIC) + struct.pack(">?i", False, 1) + partition
        one = struct.pack(">i", 1)
        return one + broker + struct.pack(">i", 1) + one + topic

    def _find_coordinator(self, _: bytes, __: int) -> bytes:
        return struct.pack(">hi", 0, 1) + _string("127.0.0.1") + struct.pack(">i", self.server.port)

    def _init_producer_id(self, _: bytes, __: int) -> bytes:
        return struct.pack(">ihqh", 0, 0, PRODUCER_ID, 0)

    def _produce(self, body: bytes, version: int) -> bytes:
        assert version == 7
        (transactional_length,) = struct.unpack_from(">h", body)
        at = 2 + max(transactional_length, 0) + 6
        assert struct.unpack_from(">i", body, at) == (1,), "one topic"
        at += 4 + len(_string(TOPIC))
        partitions, index, size = struct.unpack_from(">iii", body, at)
        assert (partitions, index) == (1, 0)
        self.server.produced.append(body[at + 12 : at + 12 + size])
        answer = struct.pack(">ihqqq", 0, 0, 0, -1, 0)
        one = struct.pack(">i", 1)
        return one + _string(TOPIC) + one + answer + struct.pack(">i", 0)

    def _fetch(self, _: bytes, version: int) -> bytes:
        assert version == 10
        # The consumer skips what it has had, so it may be sent again and again.
        served = self.server.served
        partition = struct.pack(">ihqqqii", 0, 0, 1000, 1000, 0, 0, len(served)) + served
        one = struct.pack(">i", 1)
        return struct.pack(">ihi", 0, 0, 0) + one + _string(TOPIC) + one + partition

    ANSWERS: ClassVar[dict[int, Callable[["_Connection", bytes, int], bytes]]] = {
        _API_VERSIONS: _api_versions,
        _METADATA: _metadata,
        _FIND_COORDINATOR: _find_coordinator,
        _INIT_PRODUCER_ID: _init_producer_id,
        _PRODUCE: _produce,
        _FETCH: _fetch,
    }


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
