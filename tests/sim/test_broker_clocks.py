"""Clocks that are wrong, and jump, while brokers delete old records."""

import pytest

from kafkaesque.sim.many import Kind
from tests.sim.seeds import play_seeds

pytestmark = pytest.mark.simulation


@pytest.mark.complains(
    "clock_in_doubt node=*; nothing is deleted by age meanwhile",
    "clock_believed node=*: deletion by age resumes",
)
def test_young_records_survive_wrong_clocks() -> None:
    assert play_seeds(Kind.CLOCKS, [2, 3, 5, 17])["clocks set wrong"] > 0
