"""Attacks a broker over sockets, round by round, and checks after each whether it did any harm.

A round is one of three: well-formed requests with nasty values, whose answers must arrive, in
order, and be readable; requests with changed bytes; random bytes. After each batch of rounds a
well-behaved client of ours creates a topic, produces to it and reads it back.
"""

import random
import socket
import struct
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kafkaesque.errors import WireError
from kafkaesque.server.edge.dispatch import SERVED
from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.header import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    request_header_version,
    response_header_version,
)
from kafkaesque.wire.message import Api
from tests.fuzz.mint import HOSTILE_NAMES, Mint
from tests.fuzz.mutation import garbage, mutate, text_lines
from tests.fuzz.victim import Victim
from tests.fuzz.witness import Witness, exactly

ROWS = list(SERVED.values())
REQUESTS_PER_ROUND = 12
ROUNDS_PER_CHECK = 60
CORPUS_MAX = 400
ANSWER_SECONDS_MAX = 0.25
"""Some requests wait for others that never come: those are abandoned after this."""
RSS_GROWTH_BYTES_MAX = 64 << 20


@dataclass(slots=True)
class Tally:
    """What was done, and what was found."""

    executions: int = 0
    answers: int = 0
    checks: int = 0
    apis: set[tuple[str, int]] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)
    rss_first: int = 0
    rss_last: int = 0


class Attack:
    """One attacker with its own seed against one broker."""

    def __init__(self, victim: Victim, seed: int) -> None:
        self._victim = victim
        self._chance = random.Random(seed)
        self._mint = Mint(self._chance)
        self._corpus: list[bytes] = []
        self._witness = Witness(victim.port)
        self.tally = Tally()

    def prepare(self) -> None:
        """Create the topics that requests will use."""
        self._witness.make_topics()
        self.tally.rss_first = self._victim.rss_bytes()

    @property
    def slowest_seconds(self) -> float:
        """The longest round trip of the well-behaved client."""
        return self._witness.slowest_seconds

    def batch(self) -> None:
        """Do some rounds, then check whether all is well."""
        for _ in range(ROUNDS_PER_CHECK):
            match self._chance.randrange(8):
                case 0:
                    self._mutations()
                case 1:
                    self._garbage()
                case 2:
                    self._text()
                case _:
                    self._shaped()
        self._check()

    def _shaped(self) -> None:
        """Send well-formed requests; each must get an answer of its kind."""
        waiting: deque[tuple[Api, int, Any]] = deque()
        with self._connected() as sock:
            for number in range(REQUESTS_PER_ROUND):
                row = self._chance.choice(ROWS)
                version = self._chance.randint(row.api.first, row.api.last)
                message = self._mint.message(row.request, version)
                body = _body(message, row.api, version, number, self._chance)
                self._remember(body)
                self.tally.executions += 1
                self.tally.apis.add((row.api.name, version))
                if not (row.api.name == "Produce" and message.acks == 0):
                    waiting.append((row.api, version, message))
                try:
                    sock.sendall(struct.pack(">i", len(body)) + body)
                    self._take_answers(sock, waiting)
                except OSError as error:
                    self._find(f"hung up ({error}) on one of {_short(waiting)}")
                    return
                if len(waiting) > 1:
                    return

    def _take_answers(self, sock: socket.socket, waiting: deque[tuple[Api, int, Any]]) -> None:
        """Read until all are answered or it takes too long."""
        while waiting:
            sock.settimeout(ANSWER_SECONDS_MAX)
            try:
                head = exactly(sock, 4)
            except TimeoutError:
                return
            sock.settimeout(5)
            data = exactly(sock, struct.unpack(">i", head)[0])
            api, version, _ = waiting[0]
            try:
                _, start = decode_response_header(data, response_header_version(api, version))
                answer = decode(SERVED[api.key].response, version, data, start)
            except WireError as error:
                self._find(f"unreadable answer of {api.name} v{version}: {error}")
                return
            waiting.popleft()
            self.tally.answers += 1
            self._mint.learn(answer)

    def _mutations(self) -> None:
        if not self._corpus:
            return
        with self._connected() as sock, suppress(OSError):
            for _ in range(REQUESTS_PER_ROUND):
                body = mutate(self._chance.choice(self._corpus), self._corpus, self._chance)
                size = len(body)
                if self._chance.random() < 0.1:
                    size += self._chance.choice((-1, 1, 100, -size - 1, 2**30))
                self.tally.executions += 1
                sock.sendall(struct.pack(">i", size) + body)
            sock.settimeout(0.01)
            sock.recv(65_536)

    def _garbage(self) -> None:
        for _ in range(4):
            with self._connected() as sock, suppress(OSError):
                self.tally.executions += 1
                sock.sendall(garbage(self._chance))
                sock.settimeout(0.005)
                sock.recv(65_536)

    def _text(self) -> None:
        with self._connected() as sock, suppress(OSError):
            self.tally.executions += 1
            sock.sendall(b"HELP\r\n" + text_lines(HOSTILE_NAMES, self._chance))
            sock.settimeout(0.02)
            while sock.recv(65_536):  # ends: with the connection or the socket's timeout
                pass

    def _check(self) -> None:
        tally = self.tally
        tally.checks += 1
        tally.rss_last = self._victim.rss_bytes() if self._victim.is_alive else 0
        trouble = self._victim.trouble()
        if not self._victim.is_alive:
            self._find(f"it died: {self._victim.said()[-4_000:]}")
        elif trouble is not None:
            self._find(trouble)
        else:
            problem = self._witness.round_trip()
            if problem is not None:
                self._find(f"the witness: {problem}")

    def _connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._victim.port), 5)

    def _remember(self, body: bytes) -> None:
        if len(self._corpus) < CORPUS_MAX:
            self._corpus.append(body)
        else:
            self._corpus[self._chance.randrange(CORPUS_MAX)] = body

    def _find(self, text: str) -> None:
        self.tally.findings.append(text)


def _body(message: Any, api: Api, version: int, number: int, chance: random.Random) -> bytes:
    client_id = chance.choice((None, "fuzz", *HOSTILE_NAMES))
    header = RequestHeader(key=api.key, version=version, correlation_id=number, client_id=client_id)
    return encode_request_header(header, request_header_version(api, version)) + encode(
        message, version
    )


def _short(waiting: deque[tuple[Api, int, Any]]) -> str:
    return "; ".join(
        f"{api.name} v{version} {str(message)[:1_500]}" for api, version, message in waiting
    )
