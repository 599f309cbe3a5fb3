"""Lets a leader deny that an offset exists only when it is sure that it still leads.

A leader that is cut off continues for up to two election timeouts, while others may have elected a
new one. A client that has read there, and is sent here by a stale Metadata response, asks for an
offset that this log does not have. "Out of range" would reset it to one end of the log
(`auto.offset.reset`): it would read everything twice, or miss something (bug class B19). Clients
that state their known term are refused before that; old ones, like aiokafka, do not state it.

So a request beyond the end first gets "not the leader", and is retried. Meanwhile a majority must
answer this leader. An answer that arrives more than an election timeout after the request was sent
later than the request, unless the network delayed it for longer than that.
"""

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.errors import NotLeader
from kafkaesque.raft.leadership import Leadership
from kafkaesque.types import Offset

QUESTIONS_MAX = 64
"""Offsets beyond the end of one partition whose first request is remembered."""

GIVEN_UP_MS = 2_000
"""A client that has not retried for this long has given up; no client waits that long."""


class EndProof:
    """The requests beyond the end of one partition, and since when."""

    def __init__(self, replica: Replica, clock: Clock) -> None:
        self._replica = replica
        self._clock = clock
        self._leadership: Leadership | None = None
        self._asked: dict[Offset, tuple[int, int]] = {}
        """For each offset the leadership's tick at its first request, and the time of its last one:
        a resting group has no ticks."""

    def check(self, offset: Offset) -> None:
        """Raise NotLeader until a majority was heard long enough after the first request."""
        raft = self._replica.raft
        leadership = raft.leadership
        if leadership is None:
            raise NotLeader(raft.leader)
        if raft.voters.voters == (raft.node,):
            return
        if leadership is not self._leadership:
            self._leadership = leadership
            self._asked.clear()
        now_ms = self._clock.monotonic_ms()
        first, last_ms = self._asked.pop(offset, (leadership.ticks, now_ms))
        if now_ms - last_ms > GIVEN_UP_MS:
            first = leadership.ticks  # this is another client
        if leadership.is_heard_since(first + raft.config.election_ticks):
            return  # the next request for it must wait again
        if len(self._asked) >= QUESTIONS_MAX:
            del self._asked[next(iter(self._asked))]
        self._asked[offset] = first, now_ms
        raft.wake()  # while at rest no member would answer
        raise NotLeader(None)
