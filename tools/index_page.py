"""The index of the documents, generated from their headings, so that no page is missing."""

import re
from pathlib import Path

from tools.repository import ROOT

DOCS = ROOT / "docs"

SECTIONS = {
    "tutorials": "Tutorials: learn by doing",
    "how-to": "How to: reach one goal",
    "reference": "Reference: look it up",
    "explanation": "Explanation: understand why",
    "adr": "Decisions: what we chose and what would change our mind, with the file names of then",
}

_HEAD = """\
# Documentation

Written by `make docs` from the pages' own headings and first sentences; do not edit. New here?
Start with [the first steps](tutorials/first-steps.md). To change the code, read
[the architecture](explanation/architecture.md), then [how to contribute](../CONTRIBUTING.md).
"""

FIRST = (
    "tutorials/first-steps.md",
    "explanation/architecture.md",
)
"""Pages that newcomers need before the others of their section, in this order."""

GROUPS = {
    "how-to": {
        "Running brokers": (
            "run-one-broker.md",
            "use-the-command-line.md",
            "run-a-cluster.md",
            "administer-topics.md",
            "change-settings.md",
            "back-up-and-restore.md",
            "measure-brokers.md",
        ),
        "Writing programs": (
            "at-most-once.md",
            "at-least-once.md",
            "exactly-once.md",
            "publish-and-subscribe.md",
            "use-a-queue.md",
            "work-through-a-queue.md",
            "ask-and-answer.md",
            "use-spark.md",
            "write-once-with-spark.md",
            "test-your-program.md",
        ),
        "Changing Kafkaesque": ("repeat-a-seed.md", "write-a-scenario.md"),
    }
}
"""The pages of a section by their readers, in the order in which they are needed."""

_SENTENCE = re.compile(r"^(.+?[.:?!])(?=\s|$)", re.DOTALL)
_LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def summary(text: str) -> tuple[str, str]:
    """Return a page's title and the first sentence below it, without links."""
    paragraphs = [part.strip() for part in text.split("\n\n") if part.strip()]
    assert paragraphs, "a page is never empty"
    assert paragraphs[0].startswith("# "), "a page starts with its title"
    title = paragraphs[0].removeprefix("# ").splitlines()[0]
    prose = next((part for part in paragraphs[1:] if re.match(r"(?!```)[A-Za-z*`\[\"]", part)), "")
    found = _SENTENCE.match(_LINKED.sub(r"\1", " ".join(prose.split())))
    return title, found.group(1).rstrip(":") if found else ""


def _line(page: Path, text: str) -> str:
    title, sentence = summary(text)
    return f"- [{title}]({page.relative_to(DOCS).as_posix()}): {sentence}".rstrip(": ")


def _rank(page: Path) -> tuple[int, Path]:
    name = page.relative_to(DOCS).as_posix()
    return FIRST.index(name) if name in FIRST else len(FIRST), page


def _group(folder: str, name: str) -> str:
    pages = [DOCS / folder / page for page in GROUPS[folder][name]]
    lines = "\n".join(_line(page, page.read_text()) for page in pages)
    return f"### {name}\n\n{lines}"


def render() -> str:
    """Return the index."""
    parts = [_HEAD.strip()]
    for folder, title in SECTIONS.items():
        if folder in GROUPS:
            parts.append(f"## {title}")
            parts += (_group(folder, name) for name in GROUPS[folder])
            continue
        pages = sorted((DOCS / folder).rglob("*.md"), key=_rank)
        if pages:
            lines = "\n".join(_line(page, page.read_text()) for page in pages)
            parts.append(f"## {title}\n\n{lines}")
    return "\n\n".join(parts) + "\n"
