"""Well-formed requests with values that no sane client would send.

Values come from the declarations of the messages; the name of a field decides from which pool some
of them are taken, so that requests pass the first checks and refer to existing topics, groups,
members and sessions. The pools grow with the broker's answers.
"""

import random
import struct
from typing import Any

import msgspec

from kafkaesque.record.build import ProducerStamp, build_batch
from kafkaesque.record.crc import crc32c
from kafkaesque.record.record import Record
from kafkaesque.record.view import CRC_FROM, Codec
from kafkaesque.wire.kinds import Array, Blob, Fixed, Kind, Nested, Opaque, Text
from kafkaesque.wire.message import Field, fields_of

TOPICS = ("plain", "packed", "compacted", "strict")
"""The topics that exist from the beginning: see `attack`."""

HOSTILE_NAMES = (
    *("", ".", "..", "../x", "a/b", "nul\0", "x" * 249, "x" * 250, "y" * 32_767, "\0" * 32_767),
    *(
        "PLAIN",
        "a.b",
        "a_b",
        "__consumer_offsets",
        "__metadata",
        "größe",
        "new\r\nline",
        "\x1b[2J",
        " ",
    ),
)
SETTINGS = (
    *("cleanup.policy", "compression.type", "retention.ms", "segment.bytes", "max.message.bytes"),
    *("min.insync.replicas", "message.timestamp.type", "flush.messages", "no.such.setting"),
)
SETTING_VALUES = (
    *("", "-1", "0", "1", "delete", "compact", "compact,delete", "gzip", "zstd", "producer", "x"),
    *(str(2**31), str(2**63), str(-(2**63) - 1), "9" * 400, "1e9", "true", "LogAppendTime", "\0"),
)
NOW_MS = 1_790_000_000_000
POOL_SIZE_MAX = 64

_LEARNED = frozenset(
    ("name", "topic_id", "member_id", "leader", "generation_id", "session_id", "producer_id")
)
"""The fields of answers that are worth sending back."""

_USUAL: dict[str, tuple[int, ...]] = {
    "partition": (0, 0, 0, 1, 2),
    "partition_index": (0, 0, 0, 1, 2),
    "partitions": (0, 0, 0, 1, 2),
    "partition_indexes": (0, 0, 0, 1, 2),
    "index": (0, 0, 0, 1, 2),
    "num_partitions": (-1, 1, 2, 3),
    "count": (0, 1, 2, 4, 6),
    "replication_factor": (-1, 1, 1, 2),
    "broker_ids": (1, 1, 2),
    "acks": (-1, 0, 1),
    "resource_type": (2, 2, 2, 4, 8),
    "config_operation": (0, 1, 2, 3),
    "key_type": (0, 0, 1),
    "session_timeout_ms": (6_000, 10_000, 60_000),
    "rebalance_timeout_ms": (0, 100, 10_000),
    "max_wait_ms": (0, 0, 1, 20),
    "timeout_ms": (0, 1, 1000),
    "partition_max_bytes": (1, 1000, 1 << 20),
    "max_bytes": (1, 1000, 1 << 20, 2**31 - 1),
    "fetch_offset": (0, 0, 1, 5),
    "session_epoch": (-1, 0, 1, 2),
    "timestamp": (-1, -2, -3, 0, NOW_MS),
}
"""What sane clients send: enough to reach the code that uses the insane rest of a request."""

_CRC_AT = 17
_RANGES = {"b": 7, "h": 15, "i": 31, "q": 63}
_CODECS = tuple(Codec)
_known_fields: dict[type[Any], tuple[Field, ...]] = {}


class Mint:
    """Makes requests from one source of randomness, and learns from answers."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._pools: dict[str, list[Any]] = {
            "topic": [*TOPICS],
            "group": ["g1", "g2", "g3"],
            "member_id": [""],
            "setting": [*SETTINGS],
            "value": [*SETTING_VALUES],
        }

    def message(self, cls: type[Any], version: int) -> Any:
        """Return an instance whose fields of this version are nasty, the others default."""
        fields = [field for field in _fields(cls) if field.present(version)]
        return cls(
            **{
                field.name: (
                    None
                    if field.nullable(version) and self._chance.random() < 0.1
                    else self._value(field.kind, field.name, cls.__name__, version)
                )
                for field in fields
            }
        )

    def learn(self, value: object) -> None:
        """Take names and numbers from an answer, for later requests."""
        if isinstance(value, tuple):
            for item in value[:20]:
                self.learn(item)
            return
        if not isinstance(value, msgspec.Struct):
            return
        for field in _fields(type(value)):
            found = getattr(value, field.name)
            if isinstance(field.kind, Array | Nested):
                self.learn(found)
            elif field.name in _LEARNED and found:
                self._keep(_pool_of(field.name, type(value).__name__), found)

    def _keep(self, name: str, value: object) -> None:
        if isinstance(value, str) and value.startswith("witness"):
            return
        pool = self._pools.setdefault(name, [])
        if value in pool:
            return
        if len(pool) >= POOL_SIZE_MAX:
            pool[self._chance.randrange(len(pool))] = value
        else:
            pool.append(value)

    def _value(self, kind: Kind, name: str, owner: str, version: int) -> Any:
        chance = self._chance
        match kind:
            case Fixed(letter):
                return self._fixed(letter, name, owner)
            case Text():
                return self._text(name, owner)
            case Opaque():
                return self.records()
            case Blob():
                return chance.randbytes(chance.choice((0, 1, 2, 30, 300, 20_000)))
            case Nested(struct):
                return self.message(struct, version)
            case Array(element):
                count = chance.choice((0, 1, 1, 1, 2, 3, 12))
                return tuple(self._value(element, name, owner, version) for _ in range(count))

    def _text(self, name: str, owner: str) -> str:
        chance = self._chance
        pool = self._pools.get(_pool_of(name, owner))
        if pool and chance.random() < 0.8:
            return str(chance.choice(pool))
        return chance.choice(HOSTILE_NAMES)

    def _fixed(self, letter: str, name: str, owner: str) -> Any:
        chance = self._chance
        if letter == "?":
            return chance.random() < 0.5
        if letter == "d":
            return chance.choice((0.0, -1.5, float("nan"), float("inf")))
        pool = self._pools.get(_pool_of(name, owner))
        if pool and chance.random() < 0.6:
            return chance.choice(pool)
        if letter == "16s":
            return chance.choice((bytes(16), chance.randbytes(16)))
        if letter in "HI":
            return chance.choice((0, 1, 2 ** (16 if letter == "H" else 32) - 1))
        limit = 2 ** _RANGES[letter]
        usual = _USUAL.get(name)
        if usual is not None and chance.random() < 0.8:
            return chance.choice(usual)
        return chance.choice((-limit, -2, -1, 0, 1, 2, 5, limit - 1))

    def records(self) -> bytes:
        """Return a batch, or several, or bytes that only look like one."""
        chance = self._chance
        timestamp_ms = chance.choice((NOW_MS, NOW_MS, -1, 0, 2**62, -(2**62)))
        made = [
            Record(
                offset=index,
                timestamp_ms=timestamp_ms,
                key=chance.choice((None, b"", b"k", b"key")),
                value=chance.choice((None, b"", b"v" * 10, bytes(3000))),
                headers=chance.choice(((), (("h", b"1"), ("h", None)))),
            )
            for index in range(chance.choice((1, 1, 2, 5)))
        ]
        batch = self._batch(made)
        if chance.random() < 0.3:
            for _ in range(chance.choice((1, 1, 3))):
                place = chance.choice((chance.randrange(len(batch)), chance.randrange(61)))
                batch[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            if chance.random() < 0.7:
                struct.pack_into(">I", batch, _CRC_AT, crc32c(memoryview(batch)[CRC_FROM:]))
        whole = bytes(batch)
        return chance.choice((whole, whole, whole, whole, whole + whole, whole[:-3], b"", b"junk"))

    def _batch(self, records: list[Record]) -> bytearray:
        chance = self._chance
        codec = chance.choice(_CODECS)
        if chance.random() < 0.6:
            return build_batch(records, codec=codec)
        producer = ProducerStamp(
            producer_id=chance.choice([*self._pools.get("producer_id", ()), 0, 1, 2**63 - 1]),
            producer_epoch=chance.choice((0, 0, 1, 2**15 - 1)),
            base_sequence=chance.choice((0, 0, 1, 5, 2**31 - 1)),
        )
        return build_batch(records, codec=codec, producer=producer)


def _fields(cls: type[Any]) -> tuple[Field, ...]:
    found = _known_fields.get(cls)
    if found is None:
        found = _known_fields[cls] = fields_of(cls)
    return found


def _pool_of(name: str, owner: str) -> str:
    """Return the pool for the values of a field."""
    match name:
        case "name" | "topic" | "topics" | "topic_names" | "resource_name":
            if "Config" in owner and name == "name":
                return "setting"
            return "topic"
        case "group_id" | "groups" | "groups_names" | "key" | "coordinator_keys":
            return "group"
        case "leader":
            return "member_id"
        case "generation_id_or_member_epoch":
            return "generation_id"
        case _:
            return name
