"""One partition as clients see it: append, read what is committed, look up offsets."""

from collections.abc import Callable

from kafkaesque.broker.replica import Replica
from kafkaesque.broker.watermark import Done
from kafkaesque.errors import BatchTooLarge, LeaderNotReady, NotLeader, OffsetOutOfRange
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView, peek_size
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import Offset, Term

EMPTY = memoryview(b"")


class Partition:
    """A replica behind its front. One thread owns it; what takes time is told to callbacks."""

    def __init__(self, replica: Replica, settings: TopicSettings) -> None:
        self.replica = replica
        self.settings = settings
        self._waiting: list[Callable[[], None]] = []
        replica.on_commit = self._wake
        replica.on_serving = self._wake

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
        """The bytes of all its segments."""
        return self.replica.log.segments.size_bytes

    def append(self, batches: memoryview, done: Done) -> Offset:
        """Append what a producer sent, after checking it; return the first base offset.

        Nothing is appended if any batch is refused. `done` is told the fate of the last batch:
        what precedes it is committed before it.
        """
        views = self._checked(batches)
        first: Offset | None = None
        for view in views:
            is_last = view is views[-1]
            offset = self.replica.propose(bytearray(view.data), done if is_last else _ignore)
            first = offset if first is None else first
        assert first is not None
        return first

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

    def _checked(self, batches: memoryview) -> list[BatchView]:
        self._check_serving()
        views: list[BatchView] = []
        position = 0
        while position < len(batches):
            view = BatchView(batches, position)
            if view.size > self.settings.max_message_bytes:
                limit = self.settings.max_message_bytes
                raise BatchTooLarge(f"a batch of {view.size} bytes, the topic takes {limit}")
            view.check()
            views.append(view)
            position += view.size
        return views

    def _check_serving(self) -> None:
        if not self.replica.is_serving:
            if self.replica.raft.leadership is None:
                raise NotLeader(self.replica.raft.leader)
            raise LeaderNotReady("the leader has not yet committed an entry of its own term")

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


def _ignore(_: object) -> None:
    """The last batch's fate stands for all."""
