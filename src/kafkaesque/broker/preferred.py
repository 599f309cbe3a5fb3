"""Gives leadership back: after a failure the survivors lead everything, and should not for ever."""

from collections.abc import Iterable

from kafkaesque.broker.replica import Replica
from kafkaesque.errors import RaftError
from kafkaesque.types import NodeId

TICKS_BETWEEN = 100
"""How often to look: a broker that comes back has some seconds to settle."""

TRANSFERS_MAX = 50
"""Groups handed over at a time: each refuses proposals for a moment. A broker that led 1,000 leads
them again after two minutes."""

TICKS_BEFORE_RETRY = 30 * TICKS_BETWEEN
"""After one who did not take over: it may be damaged, and each try refuses proposals meanwhile."""


def give_back(led: Iterable[tuple[Replica, NodeId]]) -> int:
    """Hand groups that are led here to their preferred leaders, if those have everything.

    Returns how many; the rest waits for the next time.
    """
    count = 0
    for replica, preferred in led:
        leadership = replica.raft.leadership
        if leadership is None or not replica.is_serving or leadership.transferee is not None:
            continue
        progress = leadership.progress.get(preferred)
        if progress is None or not progress.is_active or progress.match < replica.raft.end:
            continue
        failed_at = leadership.failed_transfers.get(preferred)
        if failed_at is not None and leadership.ticks - failed_at < TICKS_BEFORE_RETRY:
            continue
        try:
            replica.transfer(preferred)
        except RaftError:
            continue  # no voter, or not any more
        count += 1
        if count == TRANSFERS_MAX:
            break
    return count
