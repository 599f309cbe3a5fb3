"""Checks the names and types of the sink's columns before anything is written."""

from collections.abc import Mapping

from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.options import WriteOptions

_TYPES: Mapping[str, tuple[str, ...]] = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_TIME = "timestamp"


def check_columns(types: Mapping[str, str], options: WriteOptions) -> None:
    """Raise BadOption unless the sink can write columns of these types."""
    if "value" not in types:
        raise BadOption("column value is missing: select what to write as value")
    if options.topic is None and "topic" not in types:
        raise BadOption("topic is missing: set the option, or select a column topic")
    if options.with_headers and "headers" not in types:
        raise BadOption("includeHeaders is true, but column headers is missing")
    if options.with_times and types.get(_TIME) != _TIME:
        raise BadOption("keepTimestamps is true, but there is no column timestamp of that type")
    for name, allowed in _TYPES.items():
        found = types.get(name)
        if found is not None and found not in allowed:
            raise BadOption(f"column {name} is of type {found}, but must be {' or '.join(allowed)}")
