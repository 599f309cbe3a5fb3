"""What all tests share: how long and how randomly Hypothesis searches, and that ctrl-C works."""

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.complaints", "tests.provoked"]

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

# Programs that a shell starts in the background ignore ctrl-C, and so do their children. Tests that
# send it to a program of ours must not wait forever when they are run like that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
