"""All scenarios."""

from tests.chaos import alone, apart, broken, moving, queues, together, unanswered
from tests.chaos.scenario import SCENARIOS

FILES = (alone, together, apart, broken, moving, unanswered, queues)
ALL = tuple(SCENARIOS)
