"""All scenarios."""

from tests.chaos import alone, together
from tests.chaos.scenario import SCENARIOS

FILES = (alone, together)
ALL = tuple(SCENARIOS)
