"""How commands print: tables on terminals, tab-separated lines in pipes, JSON with `--json`."""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import click

from kafkaesque.types import NodeId

_THOUSAND = 1000
_WIDEST = 10_000
"""Terminal width, in columns, at which a table is measured."""
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one kind; `kind` is the singular, as in `partition`."""

    kind: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    quiet: Collection[str] = ()
    """Columns that terminals leave out if they are empty in every row."""
    sizes: Collection[str] = ()
    """Columns of bytes, shown on terminals as `1.2 GB`."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """Shorter headings of long columns, for terminals; programs read the names."""
    whole: Collection[str] = ()
    """Columns whose cells never wrap, however narrow the terminal: users copy them."""

    def records(self) -> list[dict[str, object]]:
        """Return the rows with their columns' names, for JSON."""
        names = [column.replace(" ", "_") for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


class Output:
    """Standard output of one command."""

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json

    def table(self, table: Table) -> None:
        """Print one table; with JSON, one object per row."""
        if self._is_json:
            for record in table.records():
                click.echo(_json(record))
        elif sys.stdout.isatty():
            _draw(table)
        else:
            for row in table.rows:
                click.echo("\t".join(shown(cell) for cell in row))

    def tables(self, head: Mapping[str, object], tables: Sequence[Table]) -> None:
        """Print several tables about one thing; with JSON, one object with a list for each.

        In a pipe, the first column of each line is the kind of its table.
        """
        if self._is_json:
            lists = {f"{table.kind}s": table.records() for table in tables}
            click.echo(_json({**head, **lists}))
        elif sys.stdout.isatty():
            for name, value in head.items():
                click.echo(f"{name}: {shown(value)}")
            for table in tables:
                _draw(table)
        else:
            for name, value in head.items():
                click.echo(f"{name}\t{shown(value)}")
            for table in tables:
                for row in table.rows:
                    click.echo("\t".join([table.kind, *(shown(cell) for cell in row)]))

    def done(self, sentence: str, **facts: object) -> None:
        """Print what was done; with JSON, only the facts."""
        click.echo(_json(facts) if self._is_json else sentence)

    def missing(self, nodes: Collection[NodeId]) -> None:
        """Name on stderr the brokers that did not answer, if any."""
        if nodes:
            plural = "" if len(nodes) == 1 else "s"
            names = ", ".join(map(str, sorted(nodes)))
            click.echo(f"no answer from broker{plural} {names}: output may be incomplete", err=True)

    def not_done(self, sentence: str) -> None:
        """Print on stderr that this was only a preview."""
        click.echo(f"{sentence}: nothing was changed; add --yes to do it", err=True)


def shown(value: object) -> str:
    """Return a value as printable text on one line and in one column."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(shown(each) for each in value)
        case _:
            text = str(value)
            return text if text.isprintable() else "".join(map(_printable, text))


def counted(count: int, what: str) -> str:
    """Return a number with its noun: `1 group`, `2 groups`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _printable(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _draw(table: Table) -> None:
    if not table.rows:
        click.echo(f"no {table.kind}s")
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=counted(len(table.rows), table.kind),
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    drawn_columns = [
        number
        for number, column in enumerate(table.columns)
        if column not in table.quiet or any(row[number] for row in table.rows)
    ]
    for number in drawn_columns:
        column = table.columns[number]
        cells = [row[number] for row in table.rows]
        is_number = any(isinstance(cell, int) for cell in cells)
        drawn.add_column(
            table.headings.get(column, column),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=column in table.whole,
        )
    for row in table.rows:
        texts = [
            _size(row[number]) if table.columns[number] in table.sizes else _grouped(row[number])
            for number in drawn_columns
        ]
        drawn.add_row(*map(Text, texts))
    console = Console()
    wide = console.options.update(max_width=_WIDEST)
    if Measurement.get(console, wide, drawn).maximum > console.width:
        drawn.padding = 0  # leaves one blank between columns
    console.print(drawn)


def _size(cell: object) -> str:
    if not isinstance(cell, int):
        return shown(cell)
    amount, unit = float(cell), 0
    while amount >= _THOUSAND and unit < len(_UNITS) - 1:
        amount, unit = amount / _THOUSAND, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{cell} {_UNITS[0]}"


def _grouped(cell: object) -> str:
    is_number = isinstance(cell, int) and not isinstance(cell, bool)
    return f"{cell:,}" if is_number else shown(cell)
