"""The log formats that the pipeline `logs` reads, each converted to the same columns.

Sources: nginx's and Apache's `combined`, RFC 3164, RFC 5424, and JSON objects with the usual names.
The columns: `at` in milliseconds, `format`, `host`, `program`, `level` (debug, info, warning or
error), `message`, and the rest in `fields`.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

if TYPE_CHECKING:
    from pyspark.sql import Column

_COMBINED = r'^(\S+) \S+ (\S+) \[([^\]]+)\] "([^"]*)" (\d{3}) (\d+|-) "([^"]*)" "([^"]*)"$'
_RFC3164 = r"^<(\d{1,3})>([A-Z][a-z]{2} [ \d]\d [\d:]{8}) (\S+) ([^:\[\s]+)(?:\[(\d+)\])?: ?(.*)$"
_RFC5424 = r"^<(\d{1,3})>1 (\S+) (\S+) (\S+) (\S+) (\S+) (-|(?:\[.*?\])+)(?: (.*))?$"
_NIL = "-"
_LEVELS = {
    "error": ("emerg", "emergency", "alert", "crit", "critical", "fatal", "err", "error"),
    "warning": ("warn", "warning"),
    "info": ("notice", "info", "information"),
    "debug": ("debug", "trace"),
}


def line_of(text: "Column", sender: "Column", received: "Column") -> "Column":
    """Return the line as a struct; null if its format is unknown.

    `sender` is the host if the line names none; `received` gives the year that RFC 3164 lacks.
    """
    return (
        F.when(text.rlike(_COMBINED), _combined(text, sender))
        .when(text.rlike(_RFC5424), _rfc5424(text, received))
        .when(text.rlike(_RFC3164), _rfc3164(text, received))
        .when(_object(text).isNotNull(), _json(text, sender))
    )


def _line(parts: dict[str, "Column"], fields: "Column") -> "Column":
    names = ("at", "format", "host", "program", "level", "message")
    return F.struct(*[parts[name].alias(name) for name in names], fields.alias("fields"))


def _combined(text: "Column", sender: "Column") -> "Column":
    _, client, user, time, request, status, size, referrer, agent = _groups(text, _COMBINED, 8)
    parts = {
        "at": F.unix_millis(F.try_to_timestamp(time, F.lit("dd/MMM/yyyy:HH:mm:ss Z"))),
        "format": F.lit("combined"),
        "host": sender,
        "program": F.lit("http"),
        "level": F.when(status >= "500", "error")
        .when(status >= "400", "warning")
        .otherwise("info"),
        "message": request,
    }
    rest = {"client": client, "user": user, "status": status, "bytes": size}
    return _line(parts, _fields({**rest, "referrer": referrer, "agent": agent}))


def _rfc5424(text: "Column", received: "Column") -> "Column":
    groups = _groups(text, _RFC5424, 8)
    _, priority, time, host, program, process, message_id, data, message = groups
    sent = F.when(time == _NIL, received).otherwise(F.try_to_timestamp(time))
    parts = {
        "at": F.unix_millis(sent),
        "format": F.lit("rfc5424"),
        "host": host,
        "program": program,
        "level": _level_of_priority(priority),
        "message": message,
    }
    return _line(parts, _fields({"process": process, "message_id": message_id, "data": data}))


def _rfc3164(text: "Column", received: "Column") -> "Column":
    _, priority, time, host, program, process, message = _groups(text, _RFC3164, 6)
    # A one-digit day has two spaces before it.
    said = F.concat_ws(" ", F.year(received).cast("string"), F.regexp_replace(time, " +", " "))
    this_year = F.try_to_timestamp(said, F.lit("yyyy MMM d HH:mm:ss"))
    # A December line that arrives in January would be in the future.
    is_last_year = this_year > received + F.expr("interval 1 day")
    sent = F.when(is_last_year, this_year - F.expr("interval 1 year")).otherwise(this_year)
    parts = {
        "at": F.unix_millis(sent),
        "format": F.lit("rfc3164"),
        "host": host,
        "program": program,
        "level": _level_of_priority(priority),
        "message": message,
    }
    return _line(parts, _fields({"process": process}))


def _json(text: "Column", sender: "Column") -> "Column":
    said = _object(text)

    def first(*names: str) -> "Column":
        return F.coalesce(*[F.try_element_at(said, F.lit(name)) for name in names])

    time = first("time", "timestamp", "@timestamp", "ts")
    number = time.try_cast("bigint")
    sent = F.when(time.rlike(r"^\d{13}$"), F.timestamp_millis(number))
    sent = sent.when(time.rlike(r"^\d{10}$"), F.timestamp_seconds(number))
    parts = {
        "at": F.unix_millis(sent.otherwise(F.try_to_timestamp(time))),
        "format": F.lit("json"),
        "host": F.coalesce(first("host", "hostname"), sender),
        "program": F.coalesce(first("service", "program", "logger"), F.lit("")),
        "level": _level_of_word(F.coalesce(first("level", "severity"), F.lit("info"))),
        "message": F.coalesce(first("message", "msg"), F.lit("")),
    }
    return _line(parts, said)


def _object(text: "Column") -> "Column":
    return F.when(text.rlike(r"^\s*\{"), F.from_json(text, "map<string,string>"))


def _groups(text: "Column", pattern: str, count: int) -> list["Column"]:
    return [F.regexp_extract(text, pattern, number) for number in range(count + 1)]


def _fields(columns: dict[str, "Column"]) -> "Column":
    return F.create_map(*[part for name, one in columns.items() for part in (F.lit(name), one)])


def _level_of_priority(priority: "Column") -> "Column":
    severity = priority.cast("int") % 8
    level = F.when(severity <= 3, "error").when(severity == 4, "warning")
    return level.when(severity <= 6, "info").otherwise("debug")


def _level_of_word(word: "Column") -> "Column":
    level = F.lit("info")
    for name, words in _LEVELS.items():
        level = F.when(F.lower(word).isin(*words), name).otherwise(level)
    return level
