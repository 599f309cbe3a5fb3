"""What the index says about a page."""

from tools.index_page import DOCS, GROUPS, render, summary


def test_every_page_of_a_grouped_section_is_in_a_group() -> None:
    for folder, groups in GROUPS.items():
        named = [page for pages in groups.values() for page in pages]
        assert sorted(named) == sorted(path.name for path in (DOCS / folder).glob("*.md"))


def test_the_three_delivery_guarantees_are_listed_together() -> None:
    lines = [line for line in render().splitlines() if "](how-to/" in line]
    places = [
        next(place for place, line in enumerate(lines) if f"how-to/{name}-once.md" in line)
        for name in ("at-most", "at-least", "exactly")
    ]
    assert places == list(range(places[0], places[0] + 3))


def test_the_index_quotes_title_and_first_sentence_without_links() -> None:
    text = "# One log\n\n```\nfigure\n```\n\nWhy [one](x.md) is\nenough. And more.\n\n## Next\n"
    assert summary(text) == ("One log", "Why one is enough.")


def test_a_page_without_prose_is_listed_by_its_title() -> None:
    assert summary("# Only a title\n\n| a | b |\n") == ("Only a title", "")
