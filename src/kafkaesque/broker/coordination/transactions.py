"""One broker's part in transactions: it coordinates them and takes part in them.

The coordinators are on the partitions of `__transaction_state`; the leaders of all other partitions
take the batches and the markers. On one broker they call each other directly here; in a cluster,
requests to other brokers go through `broker/coordination/transaction_carrier.py`, and `answer`
handles theirs.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from kafkaesque.broker.cluster.topics import Topics
from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, Coordinators, Ready
from kafkaesque.broker.coordination.group_coordinator import GroupCoordinator
from kafkaesque.broker.coordination.transaction_coordinator import SETTLED, TransactionCoordinator
from kafkaesque.broker.partition.partition import Appended, Partition
from kafkaesque.broker.partition.transaction_ports import (
    Checked,
    MarkerWriter,
    Told,
    TransactionDesk,
)
from kafkaesque.broker.replication.watermark import Done, Outcome
from kafkaesque.errors import (
    KafkaesqueError,
    NotCoordinator,
    NotLeader,
    OutcomeUnknown,
    UnknownTopic,
)
from kafkaesque.machines.catalog.catalog import Catalog, Topic
from kafkaesque.machines.catalog.catalog_commands import to_refusal
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    Added,
    Answer,
    Producer,
    Verified,
    Verify,
)
from kafkaesque.machines.transactions.transaction_errors import TransactionUnverified
from kafkaesque.machines.transactions.transaction_questions import (
    Allowed,
    Check,
    EndThere,
    Marked,
    Marker,
    Question,
)
from kafkaesque.machines.transactions.transaction_questions import Answer as PeerAnswer
from kafkaesque.machines.transactions.transaction_records import Place
from kafkaesque.record.view import BatchView
from kafkaesque.transactional_ids import hashed_part
from kafkaesque.types import Term

STATE_TOPIC = "__transaction_state"
STATE_SETTINGS = {"cleanup.policy": "compact"}

Then = Callable[[Appended | KafkaesqueError], None]
"""Called with the place of an appended batch, or the error."""


class House(Protocol):
    """What it needs of the broker."""

    coordinators: Coordinators[GroupCoordinator]
    topics: Topics

    @property
    def catalog(self) -> Catalog:
        """The catalog as this broker knows it."""
        ...


class Writing(NamedTuple):
    """A batch to be appended to a partition, for a producer with a transactional id."""

    transactional_id: str
    place: Place
    partition: Partition
    batches: memoryview
    adds: bool
    """Whether this write adds the partition to the transaction (Produce since 12)."""
    done: Done
    then: Then


class BrokerTransactions:
    """The transactions of one broker."""

    def __init__(self, house: House, create: Callable[[Ready], None]) -> None:
        self.coordinators: Coordinators[TransactionCoordinator] = Coordinators(create, hashed_part)
        self.desk: TransactionDesk = self
        """Answers checks of transactions; in a cluster, one that finds the coordinator."""
        self.markers: MarkerWriter = self
        """Writes markers; in a cluster, one that finds the leaders."""
        self._house = house
        self._waiting: dict[tuple[Partition, int], deque[Writing]] = {}

    # ── writing to partitions ────────────────────────────────────────────────────────────────

    def append(self, writing: Writing) -> None:
        """Append a batch of a transaction once its coordinator confirms that it belongs to one.

        Batches of one producer to one partition are appended in order of arrival.
        """
        view = BatchView(writing.batches)
        if not view.is_transactional:
            self._append(writing, -1)
            return
        key = writing.partition, view.producer_id
        if key in self._waiting:
            self._waiting[key].append(writing)
        elif writing.partition.needs_check(view):
            self._waiting[key] = deque([writing])
            self._check(writing, Producer(view.producer_id, view.producer_epoch))
        else:
            self._append(writing, -1)

    def _check(self, first: Writing, producer: Producer) -> None:
        guards = first.partition.guards
        guard = guards.begin(producer.producer_id)

        def checked(answer: int | KafkaesqueError) -> None:
            is_fresh = guards.end(producer.producer_id, guard)
            waiting = self._waiting.pop((first.partition, producer.producer_id))
            if not isinstance(answer, KafkaesqueError) and not is_fresh:
                answer = TransactionUnverified("the transaction has ended meanwhile")
            self._go_on(waiting, producer, answer)

        check = Check(
            transactional_id=first.transactional_id,
            producer_id=producer.producer_id,
            epoch=producer.epoch,
            place=first.place,
            adds=first.adds,
            coordinator_term=first.partition.producers.known.coordinator_term_of(
                producer.producer_id
            ),
        )
        self.desk.check(check, checked)

    def _go_on(
        self, waiting: deque[Writing], producer: Producer, answer: int | KafkaesqueError
    ) -> None:
        for writing in waiting:
            view = BatchView(writing.batches)
            is_same = (view.producer_id, view.producer_epoch) == producer
            if isinstance(answer, KafkaesqueError):
                writing.partition.refused(writing.batches, answer)
                writing.then(answer)
            elif is_same:
                self._append(writing, answer)
            else:  # of another epoch: it is checked on its own
                self._begin_again(writing)

    def _begin_again(self, writing: Writing) -> None:
        try:
            self.append(writing)
        except KafkaesqueError as error:
            writing.then(error)

    def _append(self, writing: Writing, number: int) -> None:
        try:
            appended = writing.partition.append(
                writing.batches, writing.done, needs_all=True, verified=number
            )
        except KafkaesqueError as error:
            writing.then(error)
        else:
            writing.then(appended)

    # ── the ports, where both sides are here ─────────────────────────────────────────────────

    def check(self, check: Check, checked: Checked) -> None:
        """Ask the coordinator of a transaction on this broker."""
        name, place = check.transactional_id, check.place
        producer = Producer(check.producer_id, check.epoch)

        def reply(answer: Answer) -> None:
            match answer:
                case Added(number=number):
                    checked(number)
                case Verified(number=number, missing=missing) if place not in missing:
                    checked(number)
                case KafkaesqueError():
                    checked(answer)
                case _:
                    checked(TransactionUnverified("the partition is not in the transaction"))

        try:
            coordinator = self.coordinators.of(name)
            if coordinator.replica.raft.term < check.coordinator_term:
                raise NotCoordinator("a newer coordinator has contacted the partition")
            if check.adds and self._house.catalog.topic_by_id(place[0]) is None:
                raise UnknownTopic("the coordinator does not know this topic")
        except KafkaesqueError as error:
            checked(error)
            return
        if check.adds:
            add = Add(transactional_id=name, producer=producer, places=(place,))
            coordinator.ask(add, reply)
        else:
            verify = Verify(transactional_id=name, producer=producer, places=(place,))
            coordinator.ask(verify, reply)

    def write(self, marker: Marker, places: Sequence[Place], told: Told) -> None:
        """Write a marker into partitions that are led here; others get NotLeader."""
        for place in places:
            try:
                self._write(marker, place, partial(told, place))
            except KafkaesqueError as error:
                told(place, error)

    def _write(
        self,
        marker: Marker,
        place: Place,
        told: Callable[[KafkaesqueError | None], None],
        term: Term | None = None,
    ) -> None:
        topic_id, index = place
        topic = self._house.catalog.topic_by_id(topic_id)
        if topic is None:
            raise UnknownTopic("the topic was deleted")
        if topic.name == OFFSETS_TOPIC:
            coordinator = self._house.coordinators.at(index)
            if term not in (None, coordinator.replica.raft.term):
                raise NotLeader(None)
            coordinator.end_transaction(marker, told)
            return
        partition = self._partition(topic, index)
        if term not in (None, partition.term):
            raise NotLeader(None)

        def done(outcome: Outcome) -> None:
            if outcome is Outcome.UNKNOWN:
                told(OutcomeUnknown("leadership was lost meanwhile"))
            else:
                told(None)

        partition.end_transaction(marker, done)

    def _partition(self, topic: Topic, index: int) -> Partition:
        """Return an open partition; the topic is in the catalog, so it will be open soon."""
        topics = self._house.topics
        try:
            if topics.topic(topic.name).topic_id == topic.topic_id:
                return topics.partition(topic.name, index)
        except UnknownTopic:
            pass
        raise NotLeader(None)

    # ── questions of other brokers ───────────────────────────────────────────────────────────

    def answer(self, question: Question, to: Callable[[PeerAnswer], None]) -> None:
        """Answer another broker's question, as far as this one leads or coordinates."""
        match question:
            case Check():
                self._check_for(question, to)
            case EndThere():
                self._end_for(question, to)

    def _check_for(self, check: Check, to: Callable[[PeerAnswer], None]) -> None:
        def checked(answer: int | KafkaesqueError) -> None:
            if isinstance(answer, KafkaesqueError):
                to(to_refusal(answer))
            else:
                to(Allowed(number=answer))

        self.check(check, checked)

    def _end_for(self, asked: EndThere, to: Callable[[PeerAnswer], None]) -> None:
        """Write a marker where this broker leads in the term that the coordinator knows.

        A topic unknown here does not count as deleted: our copy of the catalog may lag.
        """
        left = len(asked.places)
        settled: list[Place] = []

        def told(place: Place, error: KafkaesqueError | None) -> None:
            nonlocal left
            left -= 1
            is_gone = isinstance(error, UnknownTopic)
            if error is None or (isinstance(error, SETTLED) and not is_gone):
                settled.append(place)
            if left == 0:
                to(Marked(settled=settled))

        for topic_id, index, term in asked.places:
            place = topic_id, index
            try:
                self._write(asked, place, partial(told, place), term)
            except KafkaesqueError as error:
                told(place, error)
