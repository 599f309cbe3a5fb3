"""The report of a run: the same sections as Markdown and as HTML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bench.field.goals import Goal, goals
from bench.field.plots import busy_share, plots
from bench.field.results import Measurement, Participant, Results

BUSY_SHARE_MAX = 0.05
"""If others used more of the machine than this, the report says so first."""

_PERCENTS = (50.0, 90.0, 99.0, 99.9, 100.0)
_MS_NS = 1_000_000
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;font-size:13px}td,th{border:1px solid #ccc;padding:2px 8px}"
    "td:not(:first-child){text-align:right}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the report."""

    title: str
    text: str = ""
    tables: Sequence[Table] = ()
    plots: Sequence[str] = ()


def write(results: Results, folder: Path) -> None:
    """Write the report and its plots to a folder."""
    pictures = plots(results)
    for name, picture in pictures.items():
        (folder / name).write_text(picture)
    (folder / "field.md").write_text(markdown(results, ""))
    (folder / "field.html").write_text(html(results, pictures))


def markdown(results: Results, plots_at: str) -> str:
    """Return the report as Markdown; its plots are below `plots_at`."""
    there = plots(results)
    parts = [f"# {TITLE}", _head(results)]
    for section in sections(results):
        parts.append(f"## {section.title}")
        parts += [section.text] if section.text else []
        parts += [f"![{section.title}]({plots_at}{p})" for p in section.plots if p in there]
        parts += ["\n".join(_markdown_rows(table)) for table in section.tables if table.rows]
    return "\n\n".join(parts) + "\n"


def html(results: Results, pictures: Mapping[str, str]) -> str:
    """Return the report as one self-contained page."""
    parts = [f"<h1>{TITLE}</h1>", f"<p>{escape(_head(results))}</p>"]
    for section in sections(results):
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [f"<p>{escape(section.text)}</p>"] if section.text else []
        parts += [pictures[plot] for plot in section.plots if plot in pictures]
        parts += [_html_table(table) for table in section.tables if table.rows]
    head = f'<meta charset="utf-8"><title>{TITLE}</title><style>{_STYLE}</style>'
    return "<!doctype html>\n" + head + "\n" + "\n".join(parts) + "\n"


TITLE = "Measured against the field"


def _head(results: Results) -> str:
    machine = results.machine
    busy = busy_share(results)
    sentences = [
        "The systems that users might pick instead, on the same machine, in one run: the "
        f"{results.plan} run "
        f"of {results.date} at commit {results.commit}, in {_plural(results.rounds, 'round')} in "
        f"which the systems took turns, on {machine.processor}, {machine.cores} cores, "
        f"{machine.memory_bytes / 2**30:.0f} GiB, {machine.system}.",
    ]
    if busy > BUSY_SHARE_MAX:
        sentences.append(
            f"The machine was not ours alone: others took {busy:.0%} of it (median over all "
            f"measurements), and its load went from {machine.load_before:.1f} to "
            f"{machine.load_after:.1f}. Compare within the table, do not quote single figures."
        )
    if machine.touched_bytes:
        sentences.append(
            "Before each measurement as much page cache as it might need was written and deleted, "
            f"{machine.touched_bytes / 1e9:,.0f} GB in all: on a virtual machine the first "
            "touch of a page waits for the host to provide it, and no system should pay for that."
        )
    sentences.append(
        "Each system is used for a while before anything counts. Rates are the best of all rounds, "
        "processor time is the least, latencies are those of all rounds together. Each system is "
        "shown in its default mode and, if that differs, in one that syncs before it "
        "acknowledges: os means handed to the operating system, always means synced, memory means "
        "neither. Regenerate it with `make bench-field`, or in a few minutes with "
        "`make bench-field QUICK=1`."
    )
    return " ".join(sentences)


def sections(results: Results) -> Iterator[Section]:
    """Yield the parts of the report."""
    yield _goals(results)
    yield _throughput(results)
    yield _latency(results)
    yield _variations(results)
    yield _cluster(results)
    yield _footprint(results)
    yield _participants(results)
    yield _left_out(results)


def _goals(results: Results) -> Section:
    found = goals(results)
    reached = sum(goal.is_reached is True for goal in found)
    missed = sum(goal.is_reached is False for goal in found)
    columns = ("what", "against", "asked", "ratio", "Kafkaesque", "the other", "")
    return Section(
        title="Goals",
        text=f"{reached} reached, {missed} missed, {len(found) - reached - missed} not measured.",
        tables=[Table(columns=columns, rows=[_goal_row(goal) for goal in found])],
    )


def _goal_row(goal: Goal) -> Sequence[str]:
    verdict = {True: "reached", False: "**missed**", None: goal.why_not}[goal.is_reached]
    return (
        goal.what,
        goal.against,
        f"{goal.bound.value} {goal.asked:g} x",
        "-" if goal.ratio is None else f"{goal.ratio:.2f} x",
        _with_unit(goal.ours, goal.unit),
        _with_unit(goal.theirs, goal.unit),
        verdict,
    )


def _with_unit(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 2
    return f"{value:,.{digits}f} {unit}"


def _throughput(results: Results) -> Section:
    tables = []
    for name, title in results.titles.items():
        if name.startswith("throughput-"):
            rows = [row for p in results.participants if (row := _both_sides(results, name, p))]
            columns = (title, *_BOTH_SIDES)
            tables.append(Table(columns=columns, rows=rows))
    return Section(
        title="Throughput",
        text="As fast as possible with one producer, then everything read by one consumer. Seconds "
        "are processor time. If a client takes more of it than its server, the client is the limit "
        "on few cores, and the server's processor time says more than the rate.",
        tables=tables,
        plots=(
            "throughput.svg",
            "consume-100.svg",
            "produce-1024.svg",
            "consume-1024.svg",
            "cpu.svg",
        ),
    )


_BOTH_SIDES = (
    "produce, messages/s",
    "MB/s",
    "server's s per million",
    "client's",
    "consume, messages/s",
    "server's s per million",
    "client's",
    "server's memory, MB",
)


def _both_sides(results: Results, name: str, participant: Participant) -> Sequence[str]:
    fast = results.fastest(f"{name}.produce", participant.variant)
    read = results.fastest(f"{name}.consume", participant.variant)
    last = fast if read is None else read
    if last is None:
        return ()
    return (
        participant.title,
        _number(None if fast is None else fast.rate),
        _number(None if fast is None else fast.bytes_rate / 1e6),
        *_costs(results.cheapest(f"{name}.produce", participant.variant)),
        _number(None if read is None else read.rate),
        *_costs(results.cheapest(f"{name}.consume", participant.variant)),
        _number(last.resident_bytes / 1e6),
    )


def _latency(results: Results) -> Section:
    tables = []
    for figure in results.figures():
        name, _, side = figure.partition(".")
        if side == "latency":
            rows = []
            for participant in results.participants:
                found = results.latencies(figure, participant.variant)
                if found is not None:
                    values = (found.percentile(percent) / _MS_NS for percent in _PERCENTS)
                    rows.append((participant.title, *(f"{value:,.2f}" for value in values)))
            columns = (results.titles[name], "p50, ms", "p90", "p99", "p99.9", "max")
            tables.append(Table(columns=columns, rows=rows))
    return Section(
        title="Latency",
        text="Each message carries the time at which it was due, so that a stall counts for every "
        "message that it delayed (no coordinated omission).",
        tables=tables,
        plots=("latency.svg",),
    )


def _variations(results: Results) -> Section:
    families = ("batch-", "unbatched", "acks", "compression", "partitions", "replay", "tail")
    shared = ("fan-out", "in-place", "catch-up")
    rows = [
        (results.titles[name], *row)
        for name in results.titles
        if name.startswith(families + shared)
        for participant in results.participants
        if (row := _both_sides(results, name, participant))
    ]
    return Section(
        title="Batches, partitions, readers, stored data",
        text="Without syncing. Unless noted, one partition, acks=all and the "
        "client's default batching.",
        tables=[Table(columns=("workload", "system", *_BOTH_SIDES), rows=rows)],
        plots=("partitions.svg", "fan-out.svg", "stored.svg"),
    )


def _cluster(results: Results) -> Section:
    tables = []
    for name, title in results.titles.items():
        if name.startswith("replicated-"):
            rows = [row for p in results.participants if (row := _both_sides(results, name, p))]
            tables.append(Table(columns=(title, *_BOTH_SIDES), rows=rows))
    rows = []
    for participant in results.participants:
        pauses = [m.seconds for m in results.of("failover.pause", participant.variant)]
        if pauses:
            row = (f"{min(pauses):.2f}", f"{max(pauses):.2f}", str(len(pauses)))
            rows.append((participant.title, *row))
    columns = (results.titles.get("failover", ""), "pause, shortest, s", "longest, s", "kills")
    tables.append(Table(columns=columns, rows=rows))
    return Section(
        title="Three brokers",
        text="All brokers and the client share one machine: three brokers do the work three times "
        "on the same cores. A pause is the longest time between two acknowledgements that one "
        "producer with default settings sees. The server's seconds and memory are those of "
        "all brokers together.",
        tables=tables,
        plots=("replicated.svg", "failover.svg"),
    )


def _footprint(results: Results) -> Section:
    rows = []
    for participant in results.participants:
        found = results.of("start", participant.variant)
        if found:
            seconds = min(m.seconds for m in found)
            memory = min(m.resident_bytes for m in found) / 1e6
            rows.append((participant.title, f"{seconds:.2f}", f"{memory:,.0f}"))
    return Section(
        title="Start and idle memory",
        text="From process start on an empty folder to the first acknowledged message, with the "
        "topic's creation and the client's own start; the memory is that of a second later.",
        tables=[Table(columns=("system", "start, s", "idle memory, MB"), rows=rows)],
        plots=("memory.svg", "memory-used.svg"),
    )


def _participants(results: Results) -> Section:
    rows = [
        (
            f"{p.title}{' (default)' if p.is_default else ''}",
            f"{p.system} {p.version}",
            p.settings,
            p.client,
        )
        for p in results.participants
    ]
    columns = ("mode", "version", "settings that matter here", "client")
    return Section(title="Participants", tables=[Table(columns=columns, rows=rows)])


def _left_out(results: Results) -> Section:
    rows = [
        *((s.what, s.reason, s.package) for s in results.skipped),
        *((sentence, "failed in this run", "") for sentence in results.failures),
    ]
    return Section(
        title="Left out",
        text="" if rows else "Nothing was left out.",
        tables=[Table(columns=("what", "why", "what would provide it"), rows=rows)],
    )


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _costs(measurement: Measurement | None) -> tuple[str, str]:
    if measurement is None:
        return "-", "-"
    return f"{measurement.cpu_per_million:.2f}", f"{measurement.client_cpu_per_million:.2f}"


def _markdown_rows(table: Table) -> Iterator[str]:
    yield "| " + " | ".join(table.columns) + " |"
    yield "|" + "---|" * len(table.columns)
    for row in table.rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _html_table(table: Table) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}>{escape(cell.replace('**', ''))}</{tag}>" for cell in row)

    rows = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    return f"<table><tr>{cells('th', table.columns)}</tr>\n{rows}</table>"
