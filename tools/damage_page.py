"""The tables of the page on damage, generated from the cells that the tests compare with."""

from collections.abc import Iterable, Mapping

from tests.damage.broker_files import BROKER_HARMS
from tests.damage.cells import expected, expected_of_brokers
from tests.damage.harms import ACTIVE, BESIDE, CLOSED
from tests.damage.matrix import Moment, Role
from tools.repository import REFERENCE

PAGE = REFERENCE / "damage.md"
_BEGIN, _END = "<!-- matrix -->\n", "<!-- end of the matrix -->\n"
_HEAD = """
Each cell says what detected the damage first and what the result was, *stopped / running*: damage
done while the broker was stopped, or while it ran; one word if both are the same. *Mended* means
repaired from another voter, automatically; *refilled*: the others sent the whole log; *harmless*:
rebuilt or not needed, consumers got everything. *Noted*: the only copy of the catalog is not needed
there, because a snapshot covers it; the damage is reported and stays. *Error*: reads of the only
copy get an error there, never OFFSET_OUT_OF_RANGE, and everything else. *Offline*: an operator must
decide. *Refused*: the broker does not start, says why, and changes nothing. In a compacted topic
compaction may come before the read or the scrub.

"""
_RESULTS = {
    "error in the gap": "error",
    "error at the end": "error",
    "offline for a person": "offline",
    "all is there": "all is there",
}
_NOT_PLAYED = "see below"


def _short(text: str) -> str:
    noticed, _, result = text.rpartition(": ")
    shown = _RESULTS.get(result, result)
    return f"{noticed}: {shown}" if noticed else shown


def _cell(row: Mapping[str, str], column: str) -> str:
    cells = [row.get(f"{column}, {moment.value}") for moment in Moment]
    stopped, running = (_NOT_PLAYED if cell is None else _short(cell) for cell in cells)
    return stopped if stopped == running else f"{stopped} / {running}"


def _table(title: str, rows: Iterable[str]) -> str:
    cells = expected()
    columns = [(topic, role) for topic in ("plain", "compacted") for role in Role]
    head = " | ".join(f"{topic}, {role.value}" for topic, role in columns)
    lines = [f"| {title} | {head} |", "|---|" + "---|" * len(columns)]
    for what in rows:
        shown = " | ".join(_cell(cells[what], f"{topic}, {role.value}") for topic, role in columns)
        lines.append(f"| {what} | {shown} |")
    return "\n".join(lines) + "\n\n"


def _brokers() -> str:
    cells = expected_of_brokers()
    lines = ["| what a broker stands on | the only broker | one of three |", "|---|---|---|"]
    lines += [
        f"| {what} | {_cell(cells[what], '1')} | {_cell(cells[what], '3')} |"
        for what in BROKER_HARMS
    ]
    return "\n".join(lines) + "\n\n"


def render() -> str:
    """Return the page with its generated tables."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    tables = (
        _table("a closed segment", CLOSED)
        + _table("the segment that is appended to", ACTIVE)
        + _table("files beside the segments", BESIDE)
        + _brokers()
    )
    return before + _BEGIN + _HEAD + tables + _END + after
