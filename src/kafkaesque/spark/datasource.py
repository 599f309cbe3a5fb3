"""`format("kafkaesque")`: creates Spark's readers and writers."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.once_sink import OnceBatchWriter, OnceStreamWriter
from kafkaesque.spark.options import Mode, parse_read, parse_write
from kafkaesque.spark.sink import BatchWriter, StreamWriter
from kafkaesque.spark.sink_columns import check_columns
from kafkaesque.spark.source import BatchReader
from kafkaesque.spark.stream import StreamReader

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
"""The columns of Spark's own Kafka connector."""

HEADERS = StructField("headers", ArrayType(_HEADER))
"""The column that `includeHeaders` adds."""


class KafkaesqueSource(DataSource):
    """Topics of any cluster that speaks Kafka's protocol, to read from and to write to."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kafkaesque"

    def schema(self) -> StructType:
        """Return the columns of a read, unless the query names fewer itself."""
        options = {name.lower(): text for name, text in self.options.items()}
        with_headers = options.get("includeheaders", "").strip().lower() == "true"
        return StructType([*SCHEMA.fields, *([HEADERS] if with_headers else [])])

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of a batch query."""
        return BatchReader(parse_read(self.options, Mode.BATCH), self._columns(schema))

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a streaming query."""
        return StreamReader(parse_read(self.options, Mode.STREAM), self._columns(schema))

    def writer(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceArrowWriter:
        """Return the writer of a batch query."""
        if overwrite:
            raise BadOption("mode overwrite is not supported: topics are append-only")
        options = parse_write(self.options, Mode.BATCH)
        check_columns(_types(schema), options)
        return BatchWriter(options) if options.once is None else OnceBatchWriter(options)

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceStreamArrowWriter:
        """Return the writer of a streaming query; every output mode appends."""
        options = parse_write(self.options, Mode.STREAM)
        check_columns(_types(schema), options)
        return StreamWriter(options) if options.once is None else OnceStreamWriter(options)

    def _columns(self, schema: StructType) -> tuple[str, ...]:
        known = _kinds(self.schema())
        for name, kind in _kinds(schema).items():
            if name not in known:
                raise BadOption(f"schema: unknown column {name}; known are {', '.join(known)}")
            if kind != known[name]:
                raise BadOption(
                    f"schema: column {name} must be of type {known[name].simpleString()}"
                )
        return tuple(_kinds(schema))


def _kinds(schema: StructType) -> dict[str, DataType]:
    return {field.name: field.dataType for field in schema.fields}


def _types(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}
