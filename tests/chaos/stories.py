"""All scenarios."""

from tests.chaos import alone, apart, broken, together
from tests.chaos.scenario import SCENARIOS

FILES = (alone, together, apart, broken)
ALL = tuple(SCENARIOS)
