"""Every option of the connector, in one table: checked by `options`, printed in the reference."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kafkaesque.config import ClientConfig

_CLIENT = ClientConfig()


class Use(Enum):
    """What an option is for."""

    READ = "reading"
    WRITE = "writing"


_BOTH = (Use.READ, Use.WRITE)
_READ = (Use.READ,)
_WRITE = (Use.WRITE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option; a default of the empty string is none."""

    name: str
    uses: tuple[Use, ...]
    default: str
    what: str


def _option(name: str, uses: tuple[Use, ...], default: str, what: str) -> Option:
    return Option(name=name, uses=uses, default=default, what=what)


TABLE: tuple[Option, ...] = (
    _option(
        "kafka.bootstrap.servers", _BOTH, "", "Brokers to begin with: `host:port,...`. Required."
    ),
    _option("subscribe", _READ, "", "Topics to read, with commas between them."),
    _option(
        "subscribePattern", _READ, "", "Topics to read: all whose whole name the pattern fits."
    ),
    _option("assign", _READ, "", 'Partitions to read: `{"orders":[0,1]}`. One of these three.'),
    _option(
        "startingOffsets",
        _READ,
        "",
        "Where to begin: `earliest` (default of a batch query), `latest` (of a stream) or "
        '`{"orders":{"0":23,"1":-2}}` with every partition; -2 is earliest, -1 latest.',
    ),
    _option(
        "startingOffsetsByTimestamp",
        _READ,
        "",
        "Where to begin: at the first record not before a time, "
        '`{"orders":{"0":1700000000000}}` in milliseconds since 1970.',
    ),
    _option("startingTimestamp", _READ, "", "The same with one time for all partitions."),
    _option(
        "startingOffsetsByTimestampStrategy",
        _READ,
        "error",
        "What to do where no record is so late: `error`, or `latest` to begin at the end.",
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
        "Offsets that one micro-batch takes at most, shared out over partitions by what they hold.",
    ),
    _option("minPartitions", _READ, "0", "Tasks to read with: large ranges are split to reach it."),
    _option("maxRecordsPerPartition", _READ, "0", "Offsets that one task reads at most."),
    _option(
        "failOnDataLoss",
        _READ,
        "true",
        "Whether records that are gone before they were read are an error.",
    ),
    _option(
        "includeHeaders",
        _BOTH,
        "false",
        "Whether there is a column `headers`. For writing the column alone suffices.",
    ),
    _option(
        "keepTimestamps",
        _WRITE,
        "false",
        "Whether the column `timestamp` becomes the records' timestamp; else that of writing does.",
    ),
    _option(
        "topic",
        _WRITE,
        "",
        "Topic to write to; it wins over a column `topic`. A missing one is created if the broker "
        "does that by itself (`auto_create_topics`).",
    ),
    _option(
        "deliveryGuarantee",
        _WRITE,
        "at-least-once",
        "`at-least-once`: a task that Spark repeats may write its records again. `exactly-once`: "
        "what a query writes counts once for those who read committed records, whatever is "
        "repeated; only with brokers of Kafkaesque.",
    ),
    _option(
        "txnAppId",
        _WRITE,
        "",
        "With `exactly-once`: a name for what is written, which a repetition gives again. A stream "
        "is named by its checkpoint and needs this only where that cannot be read as a file.",
    ),
    _option(
        "txnVersion",
        _WRITE,
        "",
        "With `txnAppId` in a batch query: the number of this write. One that was done already is "
        "passed over; in `foreachBatch` it is the number of the micro-batch.",
    ),
    _option("kafka.client.id", _BOTH, "kafkaesque-spark", "What brokers see in their logs."),
    _option(
        "kafka.group.id",
        _READ,
        "",
        "Consumer group that is told how far a stream came, so that its lag shows; one for each "
        "query. Where the stream goes on after a restart is for its checkpoint alone to say.",
    ),
    _option(
        "kafka.isolation.level",
        _READ,
        "read_uncommitted",
        "`read_committed` leaves out aborted transactions and ends before open ones.",
    ),
    _option(
        "kafka.max.partition.fetch.bytes",
        _BOTH,
        str(_CLIENT.fetch_bytes_max),
        "How much one fetch asks for.",
    ),
    _option(
        "kafka.request.timeout.ms",
        _BOTH,
        str(_CLIENT.request_ms_max),
        "How long to wait for one answer.",
    ),
    _option(
        "kafka.delivery.timeout.ms",
        _BOTH,
        str(_CLIENT.deadline_ms),
        "How long to try again in all.",
    ),
    _option("kafka.batch.size", _WRITE, str(512 << 10), "Bytes of a batch before compression."),
    _option("kafka.compression.type", _WRITE, "none", "`none`, `gzip`, `snappy`, `lz4` or `zstd`."),
    _option("kafka.acks", _WRITE, "all", "Only `all`: a record counts when it is safe."),
    _option("kafka.enable.idempotence", _WRITE, "true", "Only `true`."),
    _option(
        "kafka.transaction.timeout.ms",
        _WRITE,
        "600000",
        "With `exactly-once`: how long one task may write.",
    ),
    _option("kafka.security.protocol", _BOTH, "plaintext", "Only `PLAINTEXT` so far."),
)

_DECIDED = "Spark decides what it does"
_BYTES = "keys and values are bytes, cast them in the query"

REFUSED: Mapping[str, str] = {
    "kafka.auto.offset.reset": "say it with startingOffsets",
    "kafka.key.deserializer": _BYTES,
    "kafka.value.deserializer": _BYTES,
    "kafka.key.serializer": _BYTES,
    "kafka.value.serializer": _BYTES,
    "kafka.enable.auto.commit": _DECIDED,
    "kafka.interceptor.classes": "there are no Java classes here",
    "groupidprefix": "name the group with kafka.group.id",
    "kafka.transactional.id": "deliveryGuarantee exactly-once names its transactions itself",
    "minoffsetspertrigger": "it is not supported; use a trigger of a longer interval",
    "maxtriggerdelay": "it is not supported; use a trigger of a longer interval",
    "path": "topics are named by subscribe, subscribePattern, assign or topic",
}
"""Options of Kafka's or the connector's that are refused, in lower case, with the reason."""

MODES: Mapping[str, str] = {
    "append": "appends to the topic",
    "overwrite": "refused by the data source: a topic can only be appended to",
    "errorifexists": "Spark's default, refused by Spark before it asks a data source in Python "
    '(`UNSUPPORTED_DATA_SOURCE_SAVE_MODE`); Spark\'s own connector appends. Say `.mode("append")`',
    "ignore": "refused by Spark likewise",
}
"""What each save mode of a batch query does."""

OF_SPARK = frozenset({"checkpointlocation", "queryname", "outputmode"})
"""What Spark itself puts among the options of a sink."""
