"""`pytest --rewrite` writes the traces of the scenarios anew; the diff is there to be reviewed."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the scenarios' traces anew")
