"""One broker for all tests of the patterns, and a topic for each."""

from collections.abc import Iterator

import pytest

from kafkaesque.testing import Broker
from tests.apache_kafka import apache_kafka


@pytest.fixture(
    scope="session", params=["kafkaesque", pytest.param("apache-kafka", marks=pytest.mark.long)]
)
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a broker: one of ours, and Apache Kafka where it is available."""
    if request.param == "apache-kafka":
        with apache_kafka() as address:
            yield address
    else:
        with Broker(partitions_default=2) as broker:
            yield broker.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test uses."""
    name = request.node.name.removeprefix("test_")
    return "".join(letter if letter.isalnum() else "-" for letter in name)[-100:].strip("-")
