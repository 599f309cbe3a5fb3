"""A whole broker with a topic, and members of a share group that talk to its handlers."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from kafkaesque.machines.queues.share_records import Place
from kafkaesque.record.read import read_records
from kafkaesque.record.view import split_batches
from kafkaesque.server.handlers import share_acknowledge, share_fetch
from kafkaesque.server.handlers.share_fetch import RECORD_LIMIT
from kafkaesque.server.requests.session import Session
from kafkaesque.server.requests.stop_signal import Stopping
from kafkaesque.wire.messages.share_acknowledge import (
    AcknowledgedPartition,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kafkaesque.wire.messages.share_acknowledge import AcknowledgementBatch as Settled
from kafkaesque.wire.messages.share_fetch import (
    AcknowledgementBatch,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
    ShareForgottenTopic,
    SharePartitionData,
)
from tests.broker.brokers import BrokerNode

GROUP = "workers"
TOPIC = "orders"
LARGE = 1 << 20
LOCK_MS = 30_000
TURNS = 20
OPENING_TICKS_MAX = 50

T = TypeVar("T")
Ack = tuple[int, int, int]
"""First offset, last offset, type."""
Acks = Mapping[int, Sequence[Ack]]
"""By partition."""


class ShareHouse(BrokerNode):
    """A broker on a simulated disk, whose share groups start with the oldest record."""

    def __init__(self, partitions: int = 2) -> None:
        super().__init__()
        assert self.create(TOPIC, partitions) == [None]
        self.topic_id = self.broker.catalog.topics[TOPIC].topic_id
        self.stopping = Stopping()
        self.set()

    def set(self, **texts: object) -> None:
        """Replace the settings of the group."""
        named = {name.replace("_", "."): str(text) for name, text in texts.items()}
        answers: list[object] = []
        settings = {"share.auto.offset.reset": "earliest", **named}
        self.broker.set_group_settings(GROUP, settings, answers.append)
        self.sync()
        assert answers == [None]
        self.tick()

    def pass_ms(self, ms: int) -> None:
        self.clock.ms += ms
        self.tick()

    def place(self, index: int = 0) -> Place:
        return self.topic_id, index

    def open(self, *indexes: int) -> None:
        """Let the group begin in these partitions; as before its first member reads anything."""
        for index in indexes or range(2):
            shares = self.broker.shares.of(self.place(index), self.broker.partition(TOPIC, index))
            for _ in range(OPENING_TICKS_MAX):
                if shares.share(GROUP) is not None:
                    break
                self.pass_ms(100)
            assert shares.share(GROUP) is not None

    async def settled(self) -> None:
        """Let everything happen that can without time."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
            self.after_event()

    async def begun(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start a request, and let it go on until it waits."""
        task = asyncio.ensure_future(work)
        await self.settled()
        return task

    async def now(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the answer to a request that does not wait for anything but the disk."""
        task = await self.begun(work)
        assert task.done(), "it waits"
        return task.result()

    def session(self, connection: int) -> Session:
        return Session(
            broker=self.broker,
            host="127.0.0.1",
            port=9092,
            connection=connection,
            stopping=self.stopping,
        )


class House(Protocol):
    """What a member needs: one broker, and a world that goes on."""

    topic_id: bytes

    def session(self, connection: int) -> Session:
        """Connect to the broker."""
        ...

    async def now(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the answer to a request."""
        ...

    def after_event(self) -> None:
        """Let the disk answer."""
        ...


class Member:
    """One member with a share session; it counts its epoch."""

    def __init__(self, house: House, name: str = "me", *, connection: int = 1) -> None:
        self.house = house
        self.name: str | None = name
        self.group: str | None = GROUP
        self.session = house.session(connection)
        self.acquire_mode = RECORD_LIMIT
        self.epoch = 0

    def _next_epoch(self, epoch: int | None) -> int:
        if epoch is not None:
            return epoch
        self.epoch += 1
        return self.epoch - 1

    def ask_fetch(
        self,
        *indexes: int,
        acks: Acks | None = None,
        epoch: int | None = None,
        wait_ms: int = 0,
        records: int = 500,
        bytes_max: int = LARGE,
        forgotten: tuple[int, ...] = (),
        is_renewal: bool = False,
        topic_id: bytes | None = None,
        version: int = 2,
    ) -> Coroutine[Any, Any, ShareFetchResponse]:
        topic = self.house.topic_id if topic_id is None else topic_id
        acks = acks or {}
        # As librdkafka does, a topic is named once more for its acknowledgements.
        topics = [
            ShareFetchTopic(
                topic_id=topic,
                partitions=tuple(
                    ShareFetchPartition(
                        partition_index=index,
                        acknowledgement_batches=tuple(
                            AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=(kind,)
                            )
                            for first, last, kind in some.get(index, ())
                        ),
                    )
                    for index in named
                ),
            )
            for named, some in ((indexes, {}), (tuple(acks), acks))
            if named
        ]
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self._next_epoch(epoch),
            max_wait_ms=wait_ms,
            min_bytes=0 if is_renewal else 1,
            max_bytes=0 if is_renewal else bytes_max,
            max_records=0 if is_renewal else records,
            batch_size=records,
            share_acquire_mode=self.acquire_mode,
            is_renew_ack=is_renewal,
            topics=tuple(topics),
            forgotten_topics_data=(ShareForgottenTopic(topic_id=topic, partitions=forgotten),)
            if forgotten
            else (),
        )
        return share_fetch.handle(request, version, self.session)

    async def fetch(self, *indexes: int, **fields: Any) -> ShareFetchResponse:
        """Ask without waiting for more."""
        return await self.house.now(self.ask_fetch(*indexes, **fields))

    def ask_acknowledge(
        self, acks: Acks, *, epoch: int | None = None, is_renewal: bool = False, version: int = 2
    ) -> Coroutine[Any, Any, ShareAcknowledgeResponse]:
        topic = AcknowledgeTopic(
            topic_id=self.house.topic_id,
            partitions=tuple(
                AcknowledgePartition(
                    partition_index=index,
                    acknowledgement_batches=tuple(
                        Settled(first_offset=first, last_offset=last, acknowledge_types=(kind,))
                        for first, last, kind in some
                    ),
                )
                for index, some in acks.items()
            ),
        )
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self._next_epoch(epoch),
            is_renew_ack=is_renewal,
            topics=(topic,),
        )
        return share_acknowledge.handle(request, version, self.session)

    async def acknowledge(self, acks: Acks, **fields: Any) -> ShareAcknowledgeResponse:
        return await self.house.now(self.ask_acknowledge(acks, **fields))

    def hang_up(self) -> None:
        """Lose the connection."""
        for callback in tuple(self.session.when_lost.values()):
            callback()
        self.session.when_lost.clear()
        self.house.after_event()


def parts(answer: ShareFetchResponse) -> dict[int, SharePartitionData]:
    """Return what an answer says of each partition; each is named once."""
    found = [one for topic in answer.responses for one in topic.partitions]
    assert len({one.partition_index for one in found}) == len(found)
    assert all(one.records is not None for one in found)
    return {one.partition_index: one for one in found}


def acknowledged(answer: ShareAcknowledgeResponse) -> dict[int, AcknowledgedPartition]:
    found = [one for topic in answer.responses for one in topic.partitions]
    assert len({one.partition_index for one in found}) == len(found)
    return {one.partition_index: one for one in found}


def acquired(answer: ShareFetchResponse, index: int = 0) -> list[tuple[int, int, int]]:
    """Return first offset, last offset and delivery count of what was handed out."""
    assert answer.error_code == 0, answer.error_message
    found = parts(answer).get(index)
    if found is None:
        return []
    assert found.error_code == 0, found.error_message
    return [
        (one.first_offset, one.last_offset, one.delivery_count) for one in found.acquired_records
    ]


def values(answer: ShareFetchResponse, index: int = 0) -> list[bytes | None]:
    """Return the values of what was handed out."""
    one = parts(answer)[index]
    held = [(some.first_offset, some.last_offset) for some in one.acquired_records]
    views = split_batches(memoryview(one.records or b""))
    return [
        record.value
        for view in views
        for record in read_records(view)
        if any(first <= record.offset <= last for first, last in held)
    ]
