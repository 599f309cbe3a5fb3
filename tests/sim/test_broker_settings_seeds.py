"""Settings of brokers are changed while everything breaks."""

import pytest

from kafkaesque.sim.many import Kind
from tests.sim.seeds import play_seeds

pytestmark = pytest.mark.simulation


def test_what_was_set_last_holds_in_the_end() -> None:
    assert play_seeds(Kind.SETTINGS, range(3))["settings changed"] > 0
