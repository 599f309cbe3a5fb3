"""Every option of the connector, in one table: checked by `options`, printed in the reference."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kafkaesque.client.config import ClientConfig

_CLIENT = ClientConfig()


class Use(Enum):
    """What an option applies to."""

    READ = "reading"
    WRITE = "writing"


_BOTH = (Use.READ, Use.WRITE)
_READ = (Use.READ,)
_WRITE = (Use.WRITE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option; an empty default means none."""

    name: str
    uses: tuple[Use, ...]
    default: str
    what: str


def _option(name: str, uses: tuple[Use, ...], default: str, what: str) -> Option:
    return Option(name=name, uses=uses, default=default, what=what)


TABLE: tuple[Option, ...] = (
    _option(
        "kafka.bootstrap.servers",
        _BOTH,
        "",
        "Brokers to connect to first: `host:port,...`. Required.",
    ),
    _option("subscribe", _READ, "", "Topics to read, comma-separated."),
    _option(
        "subscribePattern", _READ, "", "Topics to read: all whose whole name matches the pattern."
    ),
    _option("assign", _READ, "", 'Partitions to read: `{"orders":[0,1]}`. One of these three.'),
    _option(
        "startingOffsets",
        _READ,
        "",
        "Where to start: `earliest` (default of a batch query), `latest` (of a stream) or "
        '`{"orders":{"0":23,"1":-2}}` with every partition; -2 is earliest, -1 latest.',
    ),
    _option(
        "startingOffsetsByTimestamp",
        _READ,
        "",
        "Where to start: at the first record at or after a time, "
        '`{"orders":{"0":1700000000000}}` in milliseconds since 1970.',
    ),
    _option("startingTimestamp", _READ, "", "The same with one time for all partitions."),
    _option(
        "startingOffsetsByTimestampStrategy",
        _READ,
        "error",
        "What to do if no record is that late: `error`, or `latest` to start at the end.",
    ),
    _option(
        "endingOffsets", _READ, "", "Where a batch query ends: `latest` or offsets, exclusive."
    ),
    _option("endingOffsetsByTimestamp", _READ, "", "Where a batch query ends, by times."),
    _option("endingTimestamp", _READ, "", "The same with one time for all partitions."),
    _option(
        "maxOffsetsPerTrigger",
        _READ,
        "0",
        "Most offsets of one micro-batch, divided among partitions by what they hold.",
    ),
    _option("minPartitions", _READ, "0", "Tasks to read with: large ranges are split to reach it."),
    _option("maxRecordsPerPartition", _READ, "0", "Most offsets that one task reads."),
    _option(
        "failOnDataLoss",
        _READ,
        "true",
        "Whether it is an error if records are deleted before they were read.",
    ),
    _option(
        "includeHeaders",
        _BOTH,
        "false",
        "Whether there is a column `headers`. For writing, the column alone suffices.",
    ),
    _option(
        "keepTimestamps",
        _WRITE,
        "false",
        "Whether records get the timestamp in column `timestamp`; otherwise the time of writing.",
    ),
    _option(
        "topic",
        _WRITE,
        "",
        "Topic to write to; overrides a column `topic`. A missing one is created if the broker "
        "does that (`auto_create_topics`).",
    ),
    _option(
        "deliveryGuarantee",
        _WRITE,
        "at-least-once",
        "`at-least-once`: a task that Spark repeats may write its records again. `exactly-once`: "
        "readers of committed records see each write of a query once, whatever is repeated; only "
        "with brokers of Kafkaesque.",
    ),
    _option(
        "txnAppId",
        _WRITE,
        "",
        "With `exactly-once`: a name for the write, which a repetition must give again. A stream "
        "is named by its checkpoint and needs this only if that cannot be read as a file.",
    ),
    _option(
        "txnVersion",
        _WRITE,
        "",
        "With `txnAppId` in a batch query: the number of this write. A finished one is skipped; in "
        "`foreachBatch` it is the number of the micro-batch.",
    ),
    _option("kafka.client.id", _BOTH, "kafkaesque-spark", "The client id in the brokers' logs."),
    _option(
        "kafka.group.id",
        _READ,
        "",
        "Consumer group to which a stream commits its progress, so that its lag shows; one per "
        "query. After a restart the stream continues from its checkpoint, never from the group.",
    ),
    _option(
        "kafka.isolation.level",
        _READ,
        "read_uncommitted",
        "`read_committed` skips aborted transactions and stops before open ones.",
    ),
    _option(
        "kafka.max.partition.fetch.bytes",
        _BOTH,
        str(_CLIENT.fetch_bytes_max),
        "Most bytes per fetch.",
    ),
    _option(
        "kafka.request.timeout.ms",
        _BOTH,
        str(_CLIENT.request_ms_max),
        "How long to wait for one response.",
    ),
    _option(
        "kafka.delivery.timeout.ms",
        _BOTH,
        str(_CLIENT.deadline_ms),
        "How long to retry in total.",
    ),
    _option("kafka.batch.size", _WRITE, str(512 << 10), "Bytes of a batch before compression."),
    _option("kafka.compression.type", _WRITE, "none", "`none`, `gzip`, `snappy`, `lz4` or `zstd`."),
    _option("kafka.acks", _WRITE, "all", "Only `all`: a record counts when it is replicated."),
    _option("kafka.enable.idempotence", _WRITE, "true", "Only `true`."),
    _option(
        "kafka.transaction.timeout.ms",
        _WRITE,
        "600000",
        "With `exactly-once`: the most time for one task to write.",
    ),
    _option("kafka.security.protocol", _BOTH, "plaintext", "Only `PLAINTEXT` so far."),
)

_DECIDED = "Spark decides this"
_BYTES = "keys and values are bytes: cast them in the query"

REFUSED: Mapping[str, str] = {
    "kafka.auto.offset.reset": "use startingOffsets",
    "kafka.key.deserializer": _BYTES,
    "kafka.value.deserializer": _BYTES,
    "kafka.key.serializer": _BYTES,
    "kafka.value.serializer": _BYTES,
    "kafka.enable.auto.commit": _DECIDED,
    "kafka.interceptor.classes": "the connector has no Java classes",
    "groupidprefix": "name the group with kafka.group.id",
    "kafka.transactional.id": "deliveryGuarantee exactly-once names its own transactions",
    "minoffsetspertrigger": "not supported; use a trigger of a longer interval",
    "maxtriggerdelay": "not supported; use a trigger of a longer interval",
    "path": "topics are named by subscribe, subscribePattern, assign or topic",
}
"""Refused options of Kafka or its connector, in lower case, with the reason."""

MODES: Mapping[str, str] = {
    "append": "appends to the topic",
    "overwrite": "refused by the data source: topics are append-only",
    "errorifexists": "Spark's default, refused by Spark before it calls a Python data source "
    '(`UNSUPPORTED_DATA_SOURCE_SAVE_MODE`); Spark\'s own connector appends. Use `.mode("append")`',
    "ignore": "refused by Spark likewise",
}
"""What each save mode of a batch query does."""

OF_SPARK = frozenset({"checkpointlocation", "queryname", "outputmode"})
"""Options that Spark itself adds to those of a sink."""
