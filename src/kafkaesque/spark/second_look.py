"""Looks again at what seems to be gone, before it is called lost.

A broker that has just started, or is cut off, knows less than the cluster does: of a topic that it
does not know yet it can only say that there is none.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from kafkaesque.errors import BadOption, UnknownTopic

T = TypeVar("T")

SURE_SECONDS = 5.0
"""For so long it is looked again: brokers that are there catch up with the catalog far sooner."""

_PAUSE_SECONDS = 0.5


def look_again(look: Callable[[bool], T], is_whole: Callable[[T], bool] = lambda _: True) -> T:
    """Return what `look` finds, when it is whole or has not been for `SURE_SECONDS`.

    `look` is told whether to ask for the newest. Raises what it raises at last.
    """
    deadline = time.monotonic() + SURE_SECONDS
    is_newest = False
    # Ends: every turn waits, and the deadline comes.
    while time.monotonic() < deadline:
        try:
            found = look(is_newest)
            if is_whole(found):
                return found
        except (BadOption, UnknownTopic):
            pass  # it is raised at last, if it still holds then
        if is_newest:
            time.sleep(_PAUSE_SECONDS)
        is_newest = True
    return look(is_newest)
