"""The well-behaved client during an attack: it must not notice anything."""

import socket
import struct
import time
from typing import Any

from kafkaesque.wire.apis import APIS
from kafkaesque.wire.codec import decode
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.header import decode_response_header, response_header_version
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaesque.wire.messages.delete_topics import DeleteTopicsRequest
from kafkaesque.wire.messages.fetch import FetchRequest
from kafkaesque.wire.messages.metadata import MetadataRequest
from kafkaesque.wire.messages.produce import ProduceRequest
from tests.server.running import a_fetch, a_produce, request

TOPICS_MAX = 40
"""Above this number of topics the attacker's are deleted."""
SECONDS_MAX = 120.0


class Witness:
    """Creates a topic, writes to it and reads it; reports what went wrong."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._count = 0
        self.slowest_seconds = 0.0

    def make_topics(self) -> None:
        """Create the topics that the attacker uses; existing ones stay."""
        with self._connected() as sock:
            for name, settings in (
                ("plain", {}),
                ("packed", {"compression.type": "gzip"}),
                ("compacted", {"cleanup.policy": "compact"}),
                ("strict", {"message.timestamp.type": "LogAppendTime"}),
            ):
                self._create(sock, name, settings)

    def make_topic(self, name: str, settings: dict[str, str]) -> None:
        """Make one topic."""
        with self._connected() as sock:
            self._create(sock, name, settings)

    def round_trip(self) -> str | None:
        """Return what is wrong, or None."""
        self._count += 1
        name = f"witness-{self._count}"
        value = f"value-{self._count}".encode()
        began = time.monotonic()
        try:
            with self._connected() as sock:
                code = self._create(sock, name, {"retention.ms": "-1"})
                if code != ErrorCode.NONE:
                    return f"cannot create {name}: {code}"
                produced = ask(sock, a_produce(name, value), ProduceRequest, 9)
                code = produced.responses[0].partition_responses[0].error_code
                if code != ErrorCode.NONE:
                    return f"cannot produce: {code}"
                fetched = ask(sock, a_fetch(name), FetchRequest, 11)
                found = fetched.responses[0].partitions[0]
                if value not in bytes(found.records or b""):
                    return f"what was written is not read: {found}"
                took = time.monotonic() - began
                self.slowest_seconds = max(self.slowest_seconds, took)
                self._tidy(sock, name)
        except OSError as error:
            return f"{type(error).__name__}: {error}"
        return None

    def _tidy(self, sock: socket.socket, name: str) -> None:
        everything = ask(sock, request(MetadataRequest(topics=None), 9), MetadataRequest, 9)
        names = [topic.name for topic in everything.topics if not topic.is_internal]
        doomed = names if len(names) > TOPICS_MAX else [name]
        message = DeleteTopicsRequest(topic_names=tuple(doomed), timeout_ms=5_000)
        ask(sock, request(message, 5), DeleteTopicsRequest, 5)
        if len(doomed) > 1:
            self.make_topics()

    def _create(self, sock: socket.socket, name: str, settings: dict[str, str]) -> int:
        topic = CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=n, value=v) for n, v in settings.items()),
        )
        message = CreateTopicsRequest(topics=(topic,), timeout_ms=5_000)
        answer = ask(sock, request(message, 5), CreateTopicsRequest, 5)
        code: int = answer.topics[0].error_code
        return code

    def _connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), SECONDS_MAX)


def ask(sock: socket.socket, data: bytes, kind: type[Any], version: int) -> Any:
    """Send a request of this kind; return its answer."""
    sock.sendall(data)
    head = exactly(sock, 4)
    body = exactly(sock, struct.unpack(">i", head)[0])
    row = APIS[api_of(kind).key]
    _, start = decode_response_header(body, response_header_version(row.api, version))
    return decode(row.response, version, body, start)


def exactly(sock: socket.socket, count: int) -> bytes:
    """Read this many bytes; raises OSError when there are no more."""
    data = bytearray()
    while len(data) < count:  # ends: with the bytes, the connection or the socket's timeout
        piece = sock.recv(count - len(data))
        if not piece:
            raise ConnectionError("the broker hung up")
        data += piece
    return bytes(data)
