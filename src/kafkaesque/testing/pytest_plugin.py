"""The fixtures that pytest finds when Kafkaesque is installed: `broker` and `topic`.

Whoever defines fixtures of these names keeps his own. Nothing is imported or started before a test
asks for it.
"""

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafkaesque.testing.broker import Broker

_NAME_CHARS_MAX = 200
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9._-]+")


@pytest.fixture(scope="session")
def broker() -> "Iterator[Broker]":
    """One broker for all tests, or for all of one worker of pytest-xdist; its records vanish."""
    from kafkaesque.testing.broker import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def _topic_numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest, _topic_numbers: Iterator[int]) -> str:
    """The name of a topic that no other test uses; it comes to be when it is used."""
    name = _FORBIDDEN.sub("-", request.node.name)[:_NAME_CHARS_MAX].strip("-")
    return f"{name}-{next(_topic_numbers)}"
