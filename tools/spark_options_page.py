"""The reference page of the Spark options, generated from the table that checks them."""

from kafkaesque.spark.option_table import MODES, REFUSED, TABLE, Use

_HEAD = """\
# Options of the Spark data source

Every option of `format("kafkaesque")`. Generated from `src/kafkaesque/spark/option_table.py` by
`make docs`; do not edit.

Names, meanings and columns are those of Spark's own Kafka connector, so that you can move a query
between the two by changing the name of the format. Unknown options are refused, and so are options
that contradict each other. [How to use Spark](../how-to/use-spark.md) shows queries.

If Spark reports `[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafkaesque`, none of these
options has been read yet. Spark looks for data sources in a worker that it starts with the command
`python3` on the path; if that is not the Python of the environment with Kafkaesque, none of our
code runs there, so it cannot report what is wrong. Start the program with
`kafkaesque.spark.session.session`, or call `kafkaesque.spark.register(spark)` in an existing
session, or set `PYSPARK_PYTHON` to the environment's Python ([more on
this](../how-to/use-spark.md)).
"""
_TITLES = {Use.READ: "For reading", Use.WRITE: "For writing"}
_MODES = """\
## Save modes of batch queries

| mode | what it does |
|---|---|
"""
_REFUSED = """\
## Refused

Options of Spark's connector or of Kafka's clients that are not supported here, with the reason. Any
other name that starts with `kafka.` is refused too: an option without effect would be misleading.

| option | why |
|---|---|
"""


def _table(use: Use) -> str:
    lines = [f"## {_TITLES[use]}", "", "| option | default | what it does |", "|---|---|---|"]
    for one in TABLE:
        if use in one.uses:
            default = f"`{one.default}`" if one.default not in ("", "0") else ""
            what = one.what.replace("|", "\\|")
            lines.append(f"| `{one.name}` | {default} | {what} |")
    return "\n".join(lines)


def render() -> str:
    """Return the page."""
    refused = _REFUSED + "".join(f"| `{name}` | {why} |\n" for name, why in sorted(REFUSED.items()))
    modes = _MODES + "\n".join(f"| `{name}` | {what} |" for name, what in MODES.items())
    return "\n\n".join([_HEAD.strip(), _table(Use.READ), _table(Use.WRITE), modes, refused])
