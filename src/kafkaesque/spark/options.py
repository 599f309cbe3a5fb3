"""Reads and checks the options of a query: names and meanings are Spark's Kafka connector's.

An option that is unknown, contradicts another or cannot be kept is an error at once, in one
sentence that names it. Spark passes names in lower case, however they were written.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kafkaesque.client.address import parse_addresses
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import InvalidAddress
from kafkaesque.record.view import Codec
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.option_table import OF_SPARK, REFUSED, TABLE, Use
from kafkaesque.spark.positions import (
    Assigned,
    Beginning,
    Missing,
    Position,
    Selection,
    parse_places,
    parse_position,
    parse_selection,
)
from kafkaesque.transactional_ids import NAME_BYTES_MAX, NUMBER_DIGITS_MAX, is_name

_NAMES = {one.name.lower(): one for one in TABLE}
_BYTES_MAX = 1 << 30
_OF_A_BATCH = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_OF_A_STREAM = ("maxOffsetsPerTrigger", "kafka.group.id")


class Mode(Enum):
    """The kind of query."""

    BATCH = "batch queries, which read all at once"
    STREAM = "streams, which have no end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Which brokers, and how to talk to them."""

    bootstrap: str
    config: ClientConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read topics."""

    cluster: Cluster
    selection: Selection
    starting: Position
    ending: Position
    missing: Missing
    fail_on_data_loss: bool
    is_committed: bool
    with_headers: bool
    min_partitions: int
    records_per_partition_max: int
    offsets_per_trigger_max: int
    group: str | None = None
    """Where a stream commits its progress, for others to see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How to write to topics."""

    cluster: Cluster
    topic: str | None
    codec: Codec
    batch_bytes: int
    with_headers: bool
    with_times: bool
    once: "Once | None" = None
    """Set for writing exactly once; without it, at least once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """What identifies a query that writes exactly once."""

    app: str | None
    """The name that the user gave."""
    version: int | None
    checkpoint: str | None
    transaction_ms: int


def parse_read(options: Mapping[str, str], mode: Mode) -> ReadOptions:
    """Return the options of a query that reads; raises BadOption."""
    found = _Found(options, Use.READ)
    selection = parse_selection(
        subscribe=found.text("subscribe"),
        pattern=found.text("subscribePattern"),
        assign=found.text("assign"),
    )
    for name in _OF_A_STREAM if mode is Mode.BATCH else _OF_A_BATCH:
        if found.text(name) is not None:
            raise BadOption(f"{name} is not for {mode.value}")
    default = "earliest" if mode is Mode.BATCH else "latest"
    starting = _position(found, "starting", default)
    ending = _position(found, "ending", "latest")
    if mode is Mode.BATCH and starting.is_at_latest:
        raise BadOption("startingOffsets cannot be latest in a batch query: it would read nothing")
    if ending.is_at_earliest:
        raise BadOption("endingOffsets cannot be earliest: it would read nothing")
    if isinstance(selection, Assigned):
        starting.check_places(selection.places, "startingOffsets")
    return ReadOptions(
        cluster=found.cluster(),
        selection=selection,
        starting=starting,
        ending=ending,
        missing=Missing(found.choice("startingOffsetsByTimestampStrategy", tuple(Missing))),
        fail_on_data_loss=found.flag("failOnDataLoss"),
        is_committed=found.choice("kafka.isolation.level", _ISOLATION) == _ISOLATION[1],
        with_headers=found.flag("includeHeaders"),
        min_partitions=found.count("minPartitions"),
        records_per_partition_max=found.count("maxRecordsPerPartition"),
        offsets_per_trigger_max=found.count("maxOffsetsPerTrigger"),
        group=_group(found),
    )


def parse_write(options: Mapping[str, str], mode: Mode) -> WriteOptions:
    """Return the options of a query that writes; raises BadOption."""
    found = _Found(options, Use.WRITE)
    found.choice("kafka.acks", ("all", "-1"))
    found.choice("kafka.enable.idempotence", ("true",))
    codec = found.choice("kafka.compression.type", tuple(one.name.lower() for one in Codec))
    topic = found.text("topic")
    if topic is not None and not topic:
        raise BadOption("topic names no topic: omit it if a column does")
    return WriteOptions(
        cluster=found.cluster(),
        topic=topic,
        codec=Codec[codec.upper()],
        batch_bytes=found.count("kafka.batch.size"),
        with_headers=found.flag("includeHeaders"),
        with_times=found.flag("keepTimestamps"),
        once=_once(found, mode),
    )


_GUARANTEES = ("at-least-once", "exactly-once")
_OF_ONCE = ("txnAppId", "txnVersion", "kafka.transaction.timeout.ms")


def _once(found: "_Found", mode: Mode) -> Once | None:
    if found.choice("deliveryGuarantee", _GUARANTEES) == _GUARANTEES[0]:
        for name in _OF_ONCE:
            if found.text(name) is not None:
                raise BadOption(f"{name} needs deliveryGuarantee exactly-once: set that too")
        return None
    app, version = found.text("txnAppId"), found.text("txnVersion")
    if app is not None and not is_name(app):
        raise BadOption(
            f"txnAppId is {app!r}, but must have 1 to {NAME_BYTES_MAX} bytes and no slash"
        )
    if mode is Mode.STREAM and version is not None:
        raise BadOption("txnVersion is not for streams: they number their micro-batches")
    if mode is Mode.BATCH and (app is None) != (version is None):
        raise BadOption("txnAppId and txnVersion belong together in a batch query: give both")
    if version is not None and not _is_number(version):
        raise BadOption(f"txnVersion is {version!r}, but must be a whole number")
    return Once(
        app=app,
        version=None if version is None else int(version),
        checkpoint=found.text("checkpointLocation"),
        transaction_ms=found.count("kafka.transaction.timeout.ms"),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX


_ISOLATION = ("read_uncommitted", "read_committed")


def _group(found: "_Found") -> str | None:
    group = found.text("kafka.group.id")
    if group is not None and not group.strip():
        raise BadOption("kafka.group.id names no group: omit it for none")
    return group


class _Found:
    """The given options; looked up by their documented names."""

    def __init__(self, options: Mapping[str, str], use: Use) -> None:
        self._given = {name.lower(): text for name, text in options.items()}
        for name in self._given:
            _check_name(name, use)

    def text(self, name: str) -> str | None:
        return self._given.get(name.lower())

    def or_default(self, name: str) -> str:
        text = self.text(name)
        return _NAMES[name.lower()].default if text is None else text.strip()

    def flag(self, name: str) -> bool:
        return self.choice(name, ("true", "false")) == "true"

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        text = self.or_default(name).lower()
        if text not in allowed:
            raise BadOption(f"{name} is {text!r}, but must be {' or '.join(allowed)}")
        return text

    def count(self, name: str) -> int:
        text = self.or_default(name)
        if not text.isascii() or not text.isdigit() or (int(text) < 1 and self.text(name)):
            raise BadOption(f"{name} is {text!r}, but must be a whole number above 0")
        return int(text)

    def cluster(self) -> Cluster:
        bootstrap = self.text("kafka.bootstrap.servers")
        if bootstrap is None:
            raise BadOption("kafka.bootstrap.servers is missing: give host:port of a broker")
        try:
            parse_addresses(bootstrap)
        except InvalidAddress as error:
            raise BadOption(f"kafka.bootstrap.servers: {error}") from error
        self.choice("kafka.security.protocol", ("plaintext",))
        fetch_bytes = self.count("kafka.max.partition.fetch.bytes")
        return Cluster(
            bootstrap=bootstrap,
            config=ClientConfig(
                client_id=self.or_default("kafka.client.id"),
                request_ms_max=self.count("kafka.request.timeout.ms"),
                deadline_ms=self.count("kafka.delivery.timeout.ms"),
                fetch_bytes_max=min(fetch_bytes, _BYTES_MAX),
            ),
        )


def _check_name(name: str, use: Use) -> None:
    known = _NAMES.get(name)
    if known is not None:
        if use not in known.uses:
            raise BadOption(
                f"{known.name} is an option for {known.uses[0].value}, not for {use.value}"
            )
        return
    if name in OF_SPARK:
        return
    if name in REFUSED:
        raise BadOption(f"{name} cannot be set: {REFUSED[name]}")
    if name.startswith("kafka."):
        raise BadOption(f"{name} is not supported by this connector: omit it")
    near = difflib.get_close_matches(name, _NAMES, n=1)
    hint = f": did you mean {_NAMES[near[0]].name}?" if near else ""
    raise BadOption(f"unknown option {name}{hint or '; the reference lists all'}")


def _position(found: _Found, which: str, default: str) -> Position:
    names = (f"{which}Offsets", f"{which}OffsetsByTimestamp", f"{which}Timestamp")
    given = [name for name in names if found.text(name) is not None]
    if len(given) > 1:
        raise BadOption(f"{given[0]} and {given[1]} contradict each other: give only one")
    if not given:
        return parse_position(names[0], default)
    text: Any = found.text(given[0])
    if given[0] == names[0]:
        return parse_position(given[0], text)
    if given[0] == names[1]:
        return Position(beginning=Beginning.TIMES, places=parse_places(given[0], text))
    if not text.strip().isdigit():
        raise BadOption(f"{given[0]} is {text!r}, but must be milliseconds since 1970")
    return Position(beginning=Beginning.TIME, time_ms=int(text))
