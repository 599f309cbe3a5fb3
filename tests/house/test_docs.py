"""Documents that cannot become outdated: generated pages are fresh, links resolve, ids exist."""

import re
from pathlib import Path

import pytest

from kafkaesque.cli.main import cli
from tools import (
    cli_page,
    config_page,
    index_page,
    links,
    pages,
    requirements_page,
)
from tools.repository import ROOT, relative


@pytest.mark.parametrize("page", sorted(pages.PAGES), ids=relative)
def test_a_generated_page_matches_the_code(page: Path) -> None:
    assert page.read_text() == pages.PAGES[page](), "run: make docs"


def test_every_relative_link_leads_somewhere() -> None:
    assert links.all_broken() == []


def test_every_command_has_a_help_text() -> None:
    commands = cli_page.commands(cli, ("kafkaesque",))
    assert [words for words, command in commands if not command.help] == []


def test_every_setting_has_a_reason() -> None:
    assert config_page.undocumented() == []


def test_every_requirement_that_a_test_names_exists() -> None:
    assert requirements_page.unknown_ids() == []


def test_every_page_is_in_a_section_of_the_index() -> None:
    docs = index_page.DOCS
    pages_outside = [
        relative(path)
        for path in docs.rglob("*.md")
        if path.relative_to(docs).parts[0] not in {*index_page.SECTIONS, "README.md"}
    ]
    assert pages_outside == []


def test_every_decision_has_its_four_parts() -> None:
    for record in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")):
        headings = re.findall(r"^## (.*)$", record.read_text(), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences", "What would change our mind"]
