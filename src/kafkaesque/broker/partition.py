"""One partition as clients see it: append, read what is committed, look up offsets."""

from collections.abc import Callable
from typing import NamedTuple

from kafkaesque.broker.admission import Admission
from kafkaesque.broker.producer_keeper import ProducerKeeper
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.watermark import Done, Outcome
from kafkaesque.clock import Clock
from kafkaesque.config import ProducerConfig
from kafkaesque.errors import LeaderNotReady, NotEnoughReplicas, NotLeader, OffsetOutOfRange
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView, peek_size
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import Offset, Term

EMPTY = memoryview(b"")


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
    ) -> None:
        self.replica = replica
        self.producers = ProducerKeeper(replica, clock, config or ProducerConfig())
        self._clock = clock
        self._waiting: list[Callable[[], None]] = []
        self.settings = settings
        replica.on_commit = self._wake
        replica.on_serving = self._on_serving
        if replica.is_serving:
            self.producers.serving_changed()

    @property
    def settings(self) -> TopicSettings:
        """The topic's settings; a change acts on the next append."""
        return self._settings

    @settings.setter
    def settings(self, settings: TopicSettings) -> None:
        self._settings = settings
        self._admission = Admission(settings)

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

    def append(self, batches: memoryview, done: Done, *, needs_all: bool = False) -> Appended:
        """Append the batch that a producer sent, or find that it did so before; `done` is told.

        Memory that can be written to is taken over: the batch is stamped in place. `needs_all` is
        for those who will wait until it is committed (acks=all). A repeated batch is answered with
        the place of the first, and its fate is that of the first. Raises BatchError and what the
        topic's settings and the producer's sequence refuse; then nothing has happened.
        """
        if not self.replica.is_serving:
            self._check_serving()
        if needs_all and self._settings.min_insync_replicas > 1:
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
        return Appended(offset, now_ms)

    def _append_again(self, offset: Offset, timestamp_ms: int, done: Done) -> Appended:
        if offset < self.high_watermark:
            done(Outcome.COMMITTED)
        else:
            self.replica.when_committed(done)
        is_append_time = self._admission.is_append_time
        return Appended(offset, timestamp_ms if is_append_time else NO_APPEND_TIME)

    def read(self, offset: Offset, bytes_max: int) -> memoryview:
        """Return whole committed batches from the one that covers `offset`; none at the end."""
        self._check_serving()
        end = self.high_watermark
        if not self.first_offset <= offset <= end:
            raise OffsetOutOfRange(offset, self.first_offset, end)
        if offset == end:
            return EMPTY
        data = self.replica.log.segments.read(offset, bytes_max)
        return data if end == self.replica.log.end_offset else _cut_at(data, end)

    def find_time(self, timestamp_ms: int) -> tuple[Offset, int] | None:
        """Return offset and time of the first committed record that is not earlier."""
        self._check_serving()
        return self._first_record(self.replica.log.segments.find_time(timestamp_ms), timestamp_ms)

    def newest_time(self) -> tuple[Offset, int] | None:
        """Return offset and time of the record with the greatest time."""
        self._check_serving()
        batch = self.replica.log.segments.newest_time()
        if batch is None:
            return None
        return self._first_record(batch, BatchView(batch).max_timestamp_ms)

    def when_more(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once when more is committed or leadership changes; returns how to give up."""
        self._waiting.append(callback)

        def forget() -> None:
            if callback in self._waiting:
                self._waiting.remove(callback)

        return forget

    def _check_serving(self) -> None:
        if not self.replica.is_serving:
            if self.replica.raft.leadership is None:
                raise NotLeader(self.replica.raft.leader)
            raise LeaderNotReady("the leader has not yet committed an entry of its own term")

    def _check_replicas(self) -> None:
        replicas, wanted = len(self.replica.raft.voters.voters), self._settings.min_insync_replicas
        if replicas < wanted:
            raise NotEnoughReplicas(f"the topic wants {wanted} replicas in sync, of {replicas}")

    def _on_serving(self) -> None:
        self.producers.serving_changed()
        self._wake()

    def _first_record(
        self, batch: memoryview | None, timestamp_ms: int
    ) -> tuple[Offset, int] | None:
        if batch is None:
            return None
        for record in read_records(BatchView(batch)):
            is_visible = self.first_offset <= record.offset < self.high_watermark
            if record.timestamp_ms >= timestamp_ms and is_visible:
                return record.offset, record.timestamp_ms
        return None

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
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
