"""`pytest --rewrite` rewrites the traces of the scenarios; review the diff."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the scenarios' traces")
