"""One broker for all tests of the patterns, and a topic for each."""

from collections.abc import Iterator

import pytest

from kafkaesque.testing import Broker


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Where a broker listens."""
    with Broker(partitions_default=2) as broker:
        yield broker.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test uses."""
    name = request.node.name.removeprefix("test_")
    return "".join(letter if letter.isalnum() else "-" for letter in name)[:100]
