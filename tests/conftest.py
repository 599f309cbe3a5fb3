"""What all tests share: how long and how randomly Hypothesis searches."""

from hypothesis import HealthCheck, settings

# A red build must be red again on the next machine, so the same examples are tried every time;
# `pytest --hypothesis-profile=explore` looks for new ones. Deadlines would fail on busy machines.
settings.register_profile(
    "repeat", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore",
    deadline=None,
    print_blob=True,
    max_examples=1_000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeat")
