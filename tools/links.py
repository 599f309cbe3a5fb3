"""Finds broken relative links in the documents."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.repository import relative, tracked_files

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+\s+(.*?)\s*#*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings: lower case, dashes for spaces."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(words.replace(" ", "-"))
    return found


def targets(text: str) -> Iterator[str]:
    """Yield the targets of the links in a page that point into the repository."""
    for target in _LINK.findall(_FENCE.sub("", text)):
        if not _ELSEWHERE.match(target):
            yield target


def broken(page: Path) -> Iterator[str]:
    """Yield the links of one page whose file or heading does not exist."""
    text = page.read_text()
    for target in targets(text):
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        if not file.exists() or (
            anchor and file.suffix == ".md" and anchor not in anchors(file.read_text())
        ):
            yield target


def all_broken() -> list[str]:
    """Return `page: link` for every broken link of every Markdown page."""
    pages = (path for path in tracked_files() if path.suffix == ".md")
    return [f"{relative(page)}: {link}" for page in pages for link in broken(page)]


def main() -> int:
    """Print the broken links; fail if there are any."""
    found = all_broken()
    for line in found:
        print(f"broken link in {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
