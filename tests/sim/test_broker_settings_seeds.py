"""Broker settings are changed under all faults."""

import pytest

from kafkaesque.sim.many import Kind
from tests.sim.seeds import play_seeds

pytestmark = pytest.mark.simulation


def test_the_last_setting_applies_in_the_end() -> None:
    assert play_seeds(Kind.SETTINGS, range(3))["settings changed"] > 0
