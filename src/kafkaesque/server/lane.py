"""The short way for small requests to produce: those like the last ones, but for their batch.

A request that repeats what the one before it said of topic, acks and so on is neither decoded nor
answered by the codec (`wire/produce_form.py`). Whatever is not as usual goes the usual way: a
request of another form, one that is refused, one whose batch is not committed in time.
"""

from collections.abc import Callable

from kafkaesque.broker.watermark import Outcome
from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.handlers.produce import ACKS_ALL, Share, name_of, response_of
from kafkaesque.server.pending import Pending
from kafkaesque.server.session import Session
from kafkaesque.types import Buffer
from kafkaesque.wire.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData
from kafkaesque.wire.produce_form import ProduceForm, form_of

SMALL_BYTES = 32 << 10
"""Of a larger request what this spares is next to nothing."""


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
        """Append what a request brings; None, and nothing has happened, if it must go elsewhere."""
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
            return None  # what is wrong is found, and told, the usual way
        passing.numbers = offset, append_time_ms, partition.first_offset
        return passing

    def answer_unusual(self, correlation_id: int, share: Share) -> list[Buffer]:
        """Return the answer for a batch that was appended and is not known to be committed."""
        topics = [(self._topic.name, self._topic.topic_id, [share])]
        response = response_of(topics, ACKS_ALL, self._version, self._session)
        return self._answer(correlation_id, response)


class Passing(Pending):
    """One request that was appended, until its batch is committed."""

    __slots__ = ("_correlation_id", "_index", "_lane", "_outcome", "numbers")

    numbers: tuple[int, int, int]
    """Base offset, time of the append, first offset."""

    def __init__(self, lane: Lane, correlation_id: int, index: int, timeout_ms: int) -> None:
        super().__init__(timeout_ms)
        self._lane = lane
        self._correlation_id = correlation_id
        self._index = index
        self._outcome: Outcome | None = None

    def done(self, outcome: Outcome) -> None:
        """Learn what became of the batch."""
        self._outcome = outcome
        self._end()

    def answer(self) -> list[Buffer]:
        """Return the answer, as a frame."""
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
    """Return the lane of requests like this one, whose body begins at `start` of its frame.

    Only with acks=all is a refused batch surely not appended, so that it may be begun again.
    """
    if len(frame) > SMALL_BYTES or request.acks != ACKS_ALL or request.transactional_id is not None:
        return None
    form = form_of(frame, start, version, request)
    return None if form is None else Lane(form, request, version, session, answer)
