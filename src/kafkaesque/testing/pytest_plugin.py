"""The pytest fixtures of an installed Kafkaesque: `broker` and `topic`.

Fixtures that a test suite defines under these names take precedence. Nothing is imported or started
before a test uses one.
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
    """One broker for all tests, or for each pytest-xdist worker; its records are discarded."""
    from kafkaesque.testing.broker import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def _topic_numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest, _topic_numbers: Iterator[int]) -> str:
    """A topic name that no other test uses; the topic is created on first use."""
    name = _FORBIDDEN.sub("-", request.node.name)[:_NAME_CHARS_MAX].strip("-")
    return f"{name}-{next(_topic_numbers)}"
