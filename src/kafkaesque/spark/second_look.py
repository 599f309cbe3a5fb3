"""Looks again before data that seems gone counts as lost.

A broker that has just started, or is cut off, knows less than the cluster: it reports a topic that
it does not know yet as missing.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from kafkaesque.errors import UnknownTopic
from kafkaesque.spark.errors import BadOption

T = TypeVar("T")

SURE_SECONDS = 5.0
"""How long to look again: connected brokers catch up with the catalog far sooner."""

_PAUSE_SECONDS = 0.5


def look_again(look: Callable[[bool], T], is_whole: Callable[[T], bool] = lambda _: True) -> T:
    """Return what `look` finds once it is whole, or after `SURE_SECONDS` without that.

    `look` gets whether to ask for the newest state. Raises the error of the last look.
    """
    deadline = time.monotonic() + SURE_SECONDS
    is_newest = False
    # Ends: every pass waits, and there is a deadline.
    while time.monotonic() < deadline:
        try:
            found = look(is_newest)
            if is_whole(found):
                return found
        except (BadOption, UnknownTopic):
            pass  # the last look raises it if it still holds
        if is_newest:
            time.sleep(_PAUSE_SECONDS)
        is_newest = True
    return look(is_newest)
