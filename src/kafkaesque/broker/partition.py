"""One partition as clients see it: append, read what is committed, look up offsets."""

from collections.abc import Callable
from typing import NamedTuple

from kafkaesque.broker import times
from kafkaesque.broker.admission import Admission
from kafkaesque.broker.log_settings import configure_log, internal
from kafkaesque.broker.producer_keeper import ProducerKeeper
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.watermark import Done, Outcome
from kafkaesque.clock import Clock
from kafkaesque.config import ProducerConfig
from kafkaesque.errors import (
    FutureTerm,
    LeaderNotReady,
    NotEnoughReplicas,
    NotHere,
    NotLeader,
    OffsetOutOfRange,
    PartitionOffline,
    StaleTerm,
    UnknownTopic,
)
from kafkaesque.record.view import peek_size
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import Offset, Term

EMPTY = memoryview(b"")
_SCAN_BYTES = 1 << 20


NO_APPEND_TIME = -1


class Appended(NamedTuple):
    """Where a batch is in the log, and the broker's time if that is what its topic keeps."""

    offset: Offset
    append_time_ms: int = NO_APPEND_TIME


class Partition:
    """A replica behind its front. One thread owns it; what takes time is told to callbacks."""

    def __init__(
        self,
        replica: Replica,
        settings: TopicSettings,
        clock: Clock,
        config: ProducerConfig | None = None,
        *,
        is_internal: bool = False,
    ) -> None:
        self.replica = replica
        self.producers = ProducerKeeper(replica, clock, config or ProducerConfig())
        self._gone: UnknownTopic | NotHere | None = None
        self._clock = clock
        self._is_internal = is_internal
        self.configure(settings)
        self._waiting: dict[Callable[[], None], None] = {}
        replica.on_commit = self._wake
        replica.on_serving = self._on_serving
        if replica.is_serving:
            self.producers.serving_changed()

    def configure(self, settings: TopicSettings) -> None:
        """Let these settings hold from now on; those of the log do from its next append.

        What machines live on is always synced and compacted, whatever is set.
        """
        log = self.replica.log
        self.settings = internal(settings, log.segments.config) if self._is_internal else settings
        self._admission = Admission(self.settings)
        configure_log(log, self.settings)

    @property
    def term(self) -> Term:
        """The term of the replica, which clients know as the leader epoch."""
        return self.replica.raft.term

    @property
    def first_offset(self) -> Offset:
        """The first offset that can be read."""
        return self.replica.log.start.first_offset

    @property
    def high_watermark(self) -> Offset:
        """The first offset that cannot be read yet."""
        return self.replica.high_watermark

    @property
    def size_bytes(self) -> int:
        """The bytes of its batches on disk."""
        return self.replica.log.segments.size_bytes

    @property
    def is_settled(self) -> bool:
        """Whether what was trimmed is durable and nothing else waits for the disk either."""
        return self.replica.log.is_settled

    def append(self, batches: memoryview, done: Done, *, needs_all: bool = False) -> Appended:
        """Append the batch that a producer sent, or find that it did so before; `done` is told.

        Memory that can be written to is taken over: the batch is stamped in place. `needs_all` is
        for those who will wait until it is committed (acks=all). A repeated batch is answered with
        the place of the first, and its fate is that of the first. Raises BatchError and what the
        topic's settings and the producer's sequence refuse; then nothing has happened. Raises
        DiskFull when there is no room. With `needs_all` nothing has happened then either: clients
        take that error for "not written", and may give the same records another number. One who
        does not wait hears of it also for a batch that is appended later, when there is room.
        """
        if not self.replica.is_serving:
            self._check_serving()
        if needs_all and self.settings.min_insync_replicas > 1:
            self._check_replicas()
        admission = self._admission
        view = admission.check(batches)
        repeated = self.producers.check(view)
        if repeated is not None:
            return self._append_again(repeated.base_offset, repeated.timestamp_ms, done)
        now_ms = self._clock.now_ms() if admission.is_append_time else NO_APPEND_TIME
        view = admission.prepare(view, now_ms)
        offset = self.replica.propose(view.data, done, view.last_offset_delta + 1)
        self.producers.appended(view, offset)
        if not needs_all:
            self.replica.check_room()  # else a producer that does not wait would never hear of it
        return Appended(offset, now_ms)

    def _append_again(self, offset: Offset, timestamp_ms: int, done: Done) -> Appended:
        if offset < self.high_watermark:
            done(Outcome.COMMITTED)
        else:
            self.replica.when_committed(done)
        is_append_time = self._admission.is_append_time
        return Appended(offset, timestamp_ms if is_append_time else NO_APPEND_TIME)

    def check_term(self, known: Term) -> None:
        """Raise unless this replica leads in the term that a client knows; -1 is any term."""
        self._check_serving()
        if known in (-1, self.term):
            return
        if known < self.term:
            raise StaleTerm(f"term {known} is over, the leader's is {self.term}")
        raise FutureTerm(f"term {known} is not known here yet, the leader's is {self.term}")

    def read(self, offset: Offset, bytes_max: int, *, first_always: bool = True) -> memoryview:
        """Return whole committed batches from the one that covers `offset`; none at the end.

        The first may be larger than `bytes_max`, unless `first_always` is taken away.
        """
        self._check_serving()
        end = self.high_watermark
        if not self.first_offset <= offset <= end:
            raise OffsetOutOfRange(offset, self.first_offset, end)
        if offset == end or (bytes_max <= 0 and not first_always):
            return EMPTY
        log = self.replica.log
        data = log.segments.tail(offset)
        if not data or len(data) > bytes_max:
            data = log.segments.read(offset, bytes_max, first_always=first_always)
        return data if end == log.end_offset else _cut_at(data, end)

    def bytes_from(self, offset: Offset) -> int:
        """Return about how many bytes there are to read from `offset`, without reading any.

        Never too few; too many by a few kilobytes and a batch, or by what is not committed yet.
        """
        if not self.first_offset <= offset < self.high_watermark:
            return 0
        return self.replica.log.segments.bytes_from(offset)

    def term_of(self, offset: Offset) -> Term:
        """Return the term in which the record at `offset` was, or would be, written."""
        log = self.replica.log
        return log.term_at(log.index_at(offset))

    def end_of_term(self, term: Term) -> tuple[Term, Offset] | None:
        """Return the newest term up to `term` and where it ends; None if none is that old."""
        self._check_serving()
        return self.replica.log.end_of_term(term)

    def find_time(self, timestamp_ms: int) -> tuple[Offset, int] | None:
        """Return offset and time of the first committed record that is not earlier."""
        self._check_serving()
        segments = self.replica.log.segments
        return times.find_time(segments, timestamp_ms, self.first_offset, self.high_watermark)

    def newest_time(self) -> tuple[Offset, int] | None:
        """Return offset and time of the committed record with the greatest time."""
        self._check_serving()
        segments = self.replica.log.segments
        return times.newest_time(segments, self.first_offset, self.high_watermark)

    def trim(self, offset: Offset) -> bool:
        """Forget the records before `offset`; durable once the partition is settled.

        Returns False, and has done nothing, while not all of it is durable here: ask again after
        the next round. Raises OffsetOutOfRange for what is not committed.
        """
        self._check_serving()
        end = self.high_watermark
        if not 0 <= offset <= end:
            raise OffsetOutOfRange(offset, self.first_offset, end)
        log = self.replica.log
        if offset > log.offset_at(log.stable):
            return False
        log.trim(offset)
        return True

    def close(self) -> None:
        """Serve nobody any more: the topic was deleted, and all who wait learn of it."""
        self._gone = UnknownTopic("the topic was deleted")
        self.replica.retire(Outcome.DELETED)
        self._wake()

    def leave(self) -> None:
        """Serve nobody any more: the partition is on other brokers now."""
        self._gone = NotHere("this partition has been moved to other brokers")
        self.replica.retire(Outcome.UNKNOWN)
        self._wake()

    def when_more(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once when more is committed or leadership changes; returns how to give up."""
        self._waiting[callback] = None

        def forget() -> None:
            self._waiting.pop(callback, None)

        return forget

    def _check_serving(self) -> None:
        if not self.replica.is_serving:
            if self._gone is not None:
                raise type(self._gone)(str(self._gone))
            if self.replica.error is not None:
                raise PartitionOffline(str(self.replica.error))
            if self.replica.raft.leadership is None:
                raise NotLeader(self.replica.raft.leader)
            raise LeaderNotReady("the leader has not yet committed an entry of its own term")

    def _check_replicas(self) -> None:
        replicas, wanted = len(self.replica.raft.voters.voters), self.settings.min_insync_replicas
        if replicas < wanted:
            raise NotEnoughReplicas(f"the topic wants {wanted} replicas in sync, of {replicas}")

    def _on_serving(self) -> None:
        self.producers.serving_changed()
        self._wake()

    def _wake(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for callback in waiting:
                callback()


def _cut_at(data: memoryview, end: Offset) -> memoryview:
    """Leave out the batches that are not committed yet."""
    position = 0
    while position < len(data):
        base, size = peek_size(data, position)
        if base >= end:
            break
        position += size
    return data[:position]
