"""What the index says about a page."""

from tools.index_page import summary


def test_the_index_quotes_title_and_first_sentence_without_links() -> None:
    text = "# One log\n\n```\nfigure\n```\n\nWhy [one](x.md) is\nenough. And more.\n\n## Next\n"
    assert summary(text) == ("One log", "Why one is enough.")


def test_a_page_without_prose_is_listed_by_its_title() -> None:
    assert summary("# Only a title\n\n| a | b |\n") == ("Only a title", "")
