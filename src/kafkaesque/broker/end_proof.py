"""Lets a leader say that an offset does not exist only when it is sure to have been the leader.

A leader that is cut off goes on for up to two election time-outs, while others may have elected
another. Whoever has read there, and is sent here by a stale answer to Metadata, asks for an offset
that this log does not have. "Out of range" would make it begin anew at one end of the log
(`auto.offset.reset`): it would read everything twice, or miss something (bug class B19). Clients
that tell which term they know are refused before that; old ones, as aiokafka, do not tell.

So whoever asks beyond the end hears "not the leader" first, and asks again. Meanwhile a majority
must answer this leader. What it hears later than an election time-out after the question was not
sent before it, unless the network kept it for longer than that.
"""

from kafkaesque.broker.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.errors import NotLeader
from kafkaesque.raft.leadership import Leadership
from kafkaesque.types import Offset

QUESTIONS_MAX = 64
"""Offsets beyond the end of one partition of which it is known when they were first asked for."""

GIVEN_UP_MS = 2_000
"""Whoever has not asked again for so long has given up; no client waits that long."""


class EndProof:
    """Who has asked beyond the end of one partition, and since when."""

    def __init__(self, replica: Replica, clock: Clock) -> None:
        self._replica = replica
        self._clock = clock
        self._leadership: Leadership | None = None
        self._asked: dict[Offset, tuple[int, int]] = {}
        """For each offset the tick of the leadership at which it was first asked for, and the time
        at which it last was: a group at rest has no ticks."""

    def check(self, offset: Offset) -> None:
        """Raise NotLeader until a majority was heard long enough after the first question."""
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
            first = leadership.ticks  # this is somebody else
        if leadership.is_heard_since(first + raft.config.election_ticks):
            return  # and the next one who asks for it has to wait again
        if len(self._asked) >= QUESTIONS_MAX:
            del self._asked[next(iter(self._asked))]
        self._asked[offset] = first, now_ms
        raft.wake()  # at rest nobody would answer
        raise NotLeader(None)
