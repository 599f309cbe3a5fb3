"""The attacker's end: sockets, hand-made requests, batches with false fields."""

import socket
import struct
from typing import Any

from kafkaesque.record.build import build_batch
from kafkaesque.record.crc import crc32c
from kafkaesque.record.record import Record
from kafkaesque.record.view import CRC_FROM, HEADER, Codec
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.fuzz.victim import Victim
from tests.fuzz.witness import ask
from tests.server.running import framed, request

SECONDS_MAX = 120.0
_CRC_AT = 17


class Hostile:
    """Attacks one broker over as many sockets as it likes."""

    def __init__(self, victim: Victim) -> None:
        self.victim = victim
        self._sockets: list[socket.socket] = []

    def connect(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.victim.port), SECONDS_MAX)
        self._sockets.append(sock)
        return sock

    def ask(self, message: Any, version: int) -> Any:
        """Send a request on a separate connection; return its answer."""
        with self.connect() as sock:
            return ask(sock, request(message, version), type(message), version)

    def is_disconnected(self, body: bytes) -> bool:
        """Send a hand-made request; return whether the broker disconnects without an answer."""
        with self.connect() as sock:
            sock.sendall(framed(body))
            try:
                return sock.recv(1) == b""
            except ConnectionResetError:
                return True

    def says(self, data: bytes, *, lines: int = 1) -> list[bytes]:
        """Send text; return this many lines of the answer."""
        with self.connect() as sock:
            sock.sendall(data)
            with sock.makefile("rb") as file:
                return [file.readline() for _ in range(lines)]

    def produce(
        self, records: bytes, topic: str = "plain", *, acks: int = -1, timeout_ms: int = 5_000
    ) -> int:
        """Produce bytes as a batch; return the error code of the answer."""
        share = PartitionProduceData(index=0, records=records)
        data = TopicProduceData(name=topic, partition_data=(share,))
        message = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=(data,))
        code: int = self.ask(message, 9).responses[0].partition_responses[0].error_code
        return code

    def hang_up(self) -> None:
        for sock in self._sockets:
            sock.close()


def head(key: int, version: int, *, is_flexible: bool) -> bytes:
    """Return a request's header, for a hand-made body."""
    return struct.pack(">hhih", key, version, 1, -1) + (b"\0" if is_flexible else b"")


def a_batch(*, codec: Codec = Codec.NONE, count: int = 2, timestamp_ms: int = 1) -> bytearray:
    records = [
        Record(offset=place, timestamp_ms=timestamp_ms, key=b"k", value=b"v")
        for place in range(count)
    ]
    return build_batch(records, codec=codec)


def with_fields(batch: bytes | bytearray, payload: bytes | None = None, /, **fields: int) -> bytes:
    """Return a batch with some header fields, or its records, replaced and a correct checksum."""
    values = dict(zip(_FIELDS, HEADER.unpack_from(batch), strict=True)) | fields
    body = bytes(batch[HEADER.size :]) if payload is None else payload
    values["length"] = fields.get("length", HEADER.size + len(body) - 12)
    out = bytearray(HEADER.pack(*(values[name] for name in _FIELDS)) + body)
    struct.pack_into(">I", out, _CRC_AT, crc32c(memoryview(out)[CRC_FROM:]))
    return bytes(out)


_FIELDS = (
    *("base_offset", "length", "term", "magic", "crc", "attributes", "last_offset_delta"),
    *("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence"),
    "record_count",
)
