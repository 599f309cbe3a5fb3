"""A fast path for small Produce requests that differ from the last one only in their batch.

A request that repeats the topic, acks and so on of the one before it bypasses the codec in both
directions (`wire/produce_form.py`). Everything else takes the normal path: a request of another
form, a refused request, or one whose batch is not committed in time.
"""

from collections.abc import Callable

from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.handlers.produce import ACKS_ALL, Share, name_of, response_of
from kafkaesque.server.requests.pending_answer import Pending
from kafkaesque.server.requests.session import Session
from kafkaesque.types import Buffer
from kafkaesque.wire.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData
from kafkaesque.wire.produce_form import ProduceForm, form_of

SMALL_BYTES = 32 << 10
"""For larger requests the saving is negligible."""


class Lane:
    """The requests of one connection to one topic with acks=all, outside of transactions."""

    __slots__ = ("_answer", "_session", "_timeout_ms", "_topic", "_version", "form")

    def __init__(
        self,
        form: ProduceForm,
        request: ProduceRequest,
        version: int,
        session: Session,
        answer: Callable[[int, ProduceResponse], list[Buffer]],
    ) -> None:
        self.form = form
        topic = request.topic_data[0]
        self._topic = TopicProduceData(topic_id=topic.topic_id, name=topic.name, partition_data=())
        self._timeout_ms = request.timeout_ms
        self._version = version
        self._session = session
        self._answer = answer

    def begin(self, frame: memoryview) -> "Passing | None":
        """Append the batch of a request; None, with nothing done, if it needs the normal path."""
        found = self.form.read(frame)
        if found is None:
            return None
        correlation_id, index, records = found
        passing = Passing(self, correlation_id, index, self._timeout_ms)
        session = self._session
        try:
            partition = session.broker.topics.partition(name_of(self._topic, session), index)
            offset, append_time_ms = partition.append(records, passing.done, needs_all=True)
        except KafkaesqueError:
            return None  # the normal path finds and reports the error
        passing.numbers = offset, append_time_ms, partition.first_offset
        return passing

    def answer_unusual(self, correlation_id: int, share: Share) -> list[Buffer]:
        """Return the response for an appended batch that is not known to be committed."""
        topics = [(self._topic.name, self._topic.topic_id, [share])]
        response = response_of(topics, ACKS_ALL, self._version, self._session)
        return self._answer(correlation_id, response)


class Passing(Pending):
    """One appended request, until its batch is committed."""

    __slots__ = ("_correlation_id", "_index", "_lane", "_outcome", "numbers")

    numbers: tuple[int, int, int]
    """Base offset, append time, first offset."""

    def __init__(self, lane: Lane, correlation_id: int, index: int, timeout_ms: int) -> None:
        super().__init__(timeout_ms)
        self._lane = lane
        self._correlation_id = correlation_id
        self._index = index
        self._outcome: Outcome | None = None

    def done(self, outcome: Outcome) -> None:
        """Receive the outcome of the batch."""
        self._outcome = outcome
        self._end()

    def answer(self) -> list[Buffer]:
        """Return the response frame."""
        if self._outcome is Outcome.COMMITTED:
            return [self._lane.form.answer(self._correlation_id, self._index, self.numbers)]
        share = Share(self._index)
        share.outcome = self._outcome
        share.offset, share.append_time_ms, share.first_offset = self.numbers
        return self._lane.answer_unusual(self._correlation_id, share)


def lane_of(
    frame: memoryview,
    start: int,
    request: ProduceRequest,
    version: int,
    session: Session,
    answer: Callable[[int, ProduceResponse], list[Buffer]],
) -> Lane | None:
    """Return the lane for requests like this one, whose body starts at `start` of its frame.

    Only with acks=all is a refused batch certain not to be appended, so that it may be started
    again.
    """
    if len(frame) > SMALL_BYTES or request.acks != ACKS_ALL or request.transactional_id is not None:
        return None
    form = form_of(frame, start, version, request)
    return None if form is None else Lane(form, request, version, session, answer)
