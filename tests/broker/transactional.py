"""A whole broker on a simulated disk, and producers with transactional ids on it."""

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.broker.coordination.transactions import Writing
from kafkaesque.broker.partition.partition import Appended, Partition
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.decision import Command
from kafkaesque.machines.groups.group_commands import Answer as GroupAnswer
from kafkaesque.machines.groups.group_commands import (
    Commit,
    Committed,
    Fetched,
    FetchOffsets,
    Identity,
    TransactionalCommit,
)
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    Added,
    Answer,
    End,
    Ended,
    Init,
    Inited,
    Producer,
)
from kafkaesque.machines.transactions.transaction_questions import Check
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import split_batches
from tests.broker.brokers import BrokerNode
from tests.log.logs import START_MS

TIMEOUT_MS = 1_000


def transactional(
    sequence: int, *values: bytes, producer: Producer, timestamp_ms: int = START_MS
) -> bytearray:
    """A batch of a transaction."""
    records = [
        Record(offset=place, timestamp_ms=timestamp_ms, key=None, value=value)
        for place, value in enumerate(values)
    ]
    stamp = ProducerStamp(
        producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=sequence
    )
    return build_batch(records, producer=stamp, traits=BatchTraits(is_transactional=True))


class House(BrokerNode):
    """A broker with one topic, `orders`, of two partitions, and coordinators."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.create("orders", 2)
        self.coordinate()

    def coordinate(self) -> None:
        """Create the internal topics."""
        errors: list[KafkaesqueError | None] = []
        self.broker.coordinators.when_ready(errors.append)
        self.broker.transactions.coordinators.when_ready(errors.append)
        self.sync()
        assert errors == [None, None]

    def place(self, index: int) -> tuple[bytes, int]:
        return self.broker.catalog.topics["orders"].topic_id, index

    def partition(self, index: int = 0) -> Partition:
        return self.broker.partition("orders", index)

    def reading(self, index: int = 0) -> list[bytes | None]:
        """Return what a consumer of committed records sees, after the filtering of clients."""
        partition = self.partition(index)
        stable = partition.stable_offset
        found: list[bytes | None] = []
        offset = partition.first_offset
        while offset < stable:
            data = partition.read(offset, 1 << 20, below=stable)
            views = list(split_batches(data))
            aborted = partition.aborted(offset, views[-1].end_offset)
            skipped: set[int] = set()
            pending = sorted(aborted, key=lambda one: one.first_offset)
            for view in views:
                while pending and pending[0].first_offset <= view.base_offset:
                    skipped.add(pending.pop(0).producer_id)
                if view.is_control:
                    skipped.discard(view.producer_id)
                elif not (view.is_transactional and view.producer_id in skipped):
                    found += [r.value for r in read_records(view) if r.offset >= offset]
            offset = views[-1].end_offset
        return found


class Writer:
    """A producer with a transactional id; it numbers its batches like clients do."""

    def __init__(self, house: House, name: str = "t", *, is_v2: bool = False) -> None:
        self.house = house
        self.name = name
        self.is_v2 = is_v2
        self.sequences = [0, 0]
        self.producer = self.init()

    def init(self) -> Producer:
        answer = self._ask(Init(transactional_id=self.name, timeout_ms=TIMEOUT_MS))
        assert isinstance(answer, Inited)
        self.producer = answer.producer
        self.sequences = [0, 0]
        return answer.producer

    def add(self, *indexes: int) -> Answer | None:
        """Add partitions to the transaction; a producer of v2 need not."""
        places = tuple(self.house.place(index) for index in indexes)
        return self.add_places(*places)

    def add_places(self, *places: tuple[bytes, int]) -> Answer | None:
        add = Add(transactional_id=self.name, producer=self.producer, places=places)
        return self._ask(add)

    def add_command(self, index: int) -> Add:
        """Return the command that adds a partition, for tests that send it themselves."""
        places = (self.house.place(index),)
        return Add(transactional_id=self.name, producer=self.producer, places=places)

    def write(self, index: int, *values: bytes, sequence: int | None = None) -> object:
        """Send a batch; returns its outcome or error, or None while it waits."""
        at = self.sequences[index] if sequence is None else sequence
        result = self.send(index, transactional(at, *values, producer=self.producer))
        if sequence is None and not isinstance(result, KafkaesqueError):
            self.sequences[index] = at + len(values)
        return result

    def send(self, index: int, batch: bytearray) -> object:
        results: list[object] = []

        def then(found: Appended | KafkaesqueError) -> None:
            if isinstance(found, KafkaesqueError):
                results.append(found)

        writing = Writing(
            transactional_id=self.name,
            place=self.house.place(index),
            partition=self.house.partition(index),
            batches=memoryview(batch),
            adds=self.is_v2,
            done=results.append,
            then=then,
        )
        try:
            self.house.broker.transactions.append(writing)
        except KafkaesqueError as error:
            return error
        self.house.after_event()
        return results[0] if results else None

    def end(self, *, is_commit: bool = True) -> Answer | None:
        """End the transaction; returns the answer."""
        answer = self.try_to_end(self.producer, is_commit=is_commit)
        if isinstance(answer, Ended) and answer.producer != self.producer:
            self.producer = answer.producer
            self.sequences = [0, 0]
        return answer

    def try_to_end(self, producer: Producer, *, is_commit: bool = True) -> Answer | None:
        command = End(
            transactional_id=self.name,
            producer=producer,
            is_commit=is_commit,
            bumps_epoch=self.is_v2,
        )
        return self._ask(command)

    def commit_offset(self, group: str, offset: int) -> object:
        """Commit a group's position in partition 0 of the topic; returns the answer or an error."""
        broker = self.house.broker
        topic = broker.catalog.topics[OFFSETS_TOPIC]
        place = topic.topic_id, partition_of(group, topic.partitions)
        checked: list[int | KafkaesqueError] = []
        check = Check(
            transactional_id=self.name,
            producer_id=self.producer.producer_id,
            epoch=self.producer.epoch,
            place=place,
            adds=self.is_v2,
        )
        broker.transactions.desk.check(check, checked.append)
        self.house.after_event()
        if isinstance(checked[0], KafkaesqueError):
            return checked[0]
        commit = Commit(
            group=group,
            generation=-1,
            member=Identity(member_id=""),
            offsets=((self.house.place(0), offset, -1, ""),),
        )
        command = TransactionalCommit(commit=commit, producer_id=self.producer.producer_id)
        answers: list[GroupAnswer] = []
        broker.coordinators.of(group).ask(command, answers.append)
        self.house.after_event()
        return answers[0] if answers else None

    def _ask(self, command: Command[Answer]) -> Answer | None:
        answers: list[Answer] = []
        coordinator = self.house.broker.transactions.coordinators.of(self.name)
        coordinator.ask(command, answers.append)
        self.house.after_event()
        return answers[0] if answers else None


def fetched(house: House, group: str) -> Fetched:
    """Return a group's position."""
    answers: list[GroupAnswer] = []
    house.broker.coordinators.of(group).ask(FetchOffsets(group=group), answers.append)
    house.after_event()
    assert isinstance(answers[0], Fetched)
    return answers[0]


COMMITTED = Outcome.COMMITTED
__all__ = ["COMMITTED", "Added", "Committed", "House", "Writer", "fetched", "transactional"]
