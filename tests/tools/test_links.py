"""How broken links are found."""

from pathlib import Path

from tools.links import anchors, broken, targets


def test_links_to_other_sites_and_in_code_are_ignored() -> None:
    text = "[a](https://example.org) [b](mailto:a@example.org)\n```\n[c](gone.md)\n```\n[d](d.md#e)"
    assert list(targets(text)) == ["d.md#e"]


def test_a_heading_is_linked_in_lower_case_with_dashes() -> None:
    assert anchors("# Why one log?\n```\n# not a heading\n```\n") == {"why-one-log"}


def test_a_link_to_a_missing_file_or_heading_is_broken(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# Here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n[1](there.md) [2](gone.md) [3](there.md#here) [4](there.md#no) [5](#top)"
    )
    assert list(broken(page)) == ["gone.md", "there.md#no"]
