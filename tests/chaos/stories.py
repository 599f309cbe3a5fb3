"""All scenarios."""

from tests.chaos import alone, apart, broken, moving, together
from tests.chaos.scenario import SCENARIOS

FILES = (alone, together, apart, broken, moving)
ALL = tuple(SCENARIOS)
