"""Runs a model against a machine with a planted bug, which it must notice."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.mutants.mutation import Mutant


def notices(model: type[RuleBasedStateMachine], mutant: Mutant, examples: int, steps: int) -> None:
    """Fail unless the model, always with the same stories, finds something wrong."""
    stories = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with mutant.planted(), pytest.raises(AssertionError):
        run_state_machine_as_test(model, settings=stories)
