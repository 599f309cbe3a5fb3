"""A broker for each test that requests one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.testing.process import BrokerProcess


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A running broker with an empty folder."""
    process = BrokerProcess(tmp_path / "data")
    process.start()
    yield process
    process.kill()
