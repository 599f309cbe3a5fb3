"""Returns leadership to preferred leaders, so that survivors of a failure do not keep it."""

from collections.abc import Iterable

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.errors import RaftError
from kafkaesque.types import GroupId, NodeId

TICKS_BETWEEN = 100
"""How often to check: a broker that comes back has some seconds to settle."""

TRANSFERS_MAX = 50
"""Groups handed over at a time: each refuses proposals for a moment. A broker that led 1,000 groups
leads them again after two minutes."""

LOOKS_BEFORE_RETRY = 30
"""After a failed transfer: the target may be damaged, and each try refuses proposals."""


class GivingBack:
    """Hands groups that are led here to their preferred leaders once those have everything.

    The wait after a failure is counted in looks: a resting group has no ticks of its own, and would
    never be retried.
    """

    def __init__(self) -> None:
        self._looks = 0
        self._failed_at: dict[tuple[GroupId, NodeId], int] = {}

    def look(self, led: Iterable[tuple[Replica, NodeId]]) -> int:
        """Hand over some of these groups; return how many. The rest waits for the next look."""
        self._looks += 1
        failed_before, self._failed_at = self._failed_at, {}
        count = 0
        for replica, preferred in led:
            leadership = replica.raft.leadership
            if leadership is None or not replica.is_serving or leadership.transferee is not None:
                continue
            if preferred in leadership.failed_transfers:
                key = replica.group, preferred
                failed_at = failed_before.get(key, self._looks)
                if self._looks - failed_at < LOOKS_BEFORE_RETRY:
                    self._failed_at[key] = failed_at
                    continue
                leadership.failed_transfers.discard(preferred)
            progress = leadership.progress.get(preferred)
            if progress is None or not progress.is_active or progress.match < replica.raft.end:
                continue
            if count == TRANSFERS_MAX:
                continue
            try:
                replica.transfer(preferred)
            except RaftError:
                continue  # not a voter, or no longer one
            count += 1
        return count
