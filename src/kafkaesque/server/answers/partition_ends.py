"""Where partitions end, and where their leaders' terms began, whichever brokers lead them."""

from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.server.requests.callback_waits import together
from kafkaesque.server.requests.session import Session
from kafkaesque.types import NodeId, Offset, Term
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkaesque.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

T = TypeVar("T")
Named = tuple[str, int]
"""A topic's name and a partition."""

_LATEST = -1
_CLIENT = -1
_ENDS_VERSION, _TERMS_VERSION = 1, 4


class Began(NamedTuple):
    """The term of a partition's leader."""

    term: Term
    since: Term
    """An older term: the newest in the leader's log, or the one that was asked for."""
    first: Offset
    """The first offset of a later term than that."""


class _Led(NamedTuple):
    name: str
    number: int
    term: Term


async def ends_of(session: Session, places: Iterable[tuple[Topic, int]]) -> Mapping[Named, Offset]:
    """Return the offset behind the last record; partitions without an answer are missing."""

    def here(partition: Partition) -> Offset:
        return partition.high_watermark

    async def there(node: NodeId, led: Sequence[_Led]) -> dict[Named, Offset]:
        request = ListOffsetsRequest(
            replica_id=_CLIENT,
            topics=tuple(
                ListOffsetsTopic(
                    name=name,
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=one.number, timestamp=_LATEST)
                        for one in some
                    ),
                )
                for name, some in _by_topic(led)
            ),
        )
        said: ListOffsetsResponse = await _forwarded(session, node, request, _ENDS_VERSION)
        return {
            (topic.name, one.partition_index): one.offset
            for topic in said.topics
            for one in topic.partitions
            if not one.error_code
        }

    return await _from_leaders(session, places, here, there)


async def terms_of(
    session: Session, places: Iterable[tuple[Topic, int]], since: Term | None = None
) -> Mapping[Named, Began]:
    """Return the leaders' terms, and where what is newer than a term begins in their logs.

    Without `since` that is the term before the leader's own. Partitions without an answer are
    missing.
    """

    def asked_of(term: Term) -> Term:
        return term - 1 if since is None else since

    def here(partition: Partition) -> Began:
        asked = asked_of(partition.term)
        known = partition.end_of_term(asked)
        return Began(partition.term, *(known or (asked, partition.first_offset)))

    async def there(node: NodeId, led: Sequence[_Led]) -> dict[Named, Began]:
        terms = {(one.name, one.number): one.term for one in led}
        request = OffsetForLeaderEpochRequest(
            replica_id=_CLIENT,
            topics=tuple(
                OffsetForLeaderTopic(
                    topic=name,
                    partitions=tuple(
                        OffsetForLeaderPartition(
                            partition=one.number,
                            current_leader_epoch=one.term,
                            leader_epoch=asked_of(one.term),
                        )
                        for one in some
                    ),
                )
                for name, some in _by_topic(led)
            ),
        )
        said: OffsetForLeaderEpochResponse
        said = await _forwarded(session, node, request, _TERMS_VERSION)
        return {
            (topic.topic, one.partition): _began(
                terms[topic.topic, one.partition], asked_of, one.leader_epoch, one.end_offset
            )
            for topic in said.topics
            for one in topic.partitions
            if not one.error_code
        }

    return await _from_leaders(session, places, here, there)


def _began(term: Term, asked_of: Callable[[Term], Term], since: Term, first: Offset) -> Began:
    """Return what a leader said; with -1 its log has nothing that old."""
    return Began(term, asked_of(term), 0) if since < 0 else Began(term, since, first)


async def _from_leaders(
    session: Session,
    places: Iterable[tuple[Topic, int]],
    here: Callable[[Partition], T],
    there: Callable[[NodeId, Sequence[_Led]], Coroutine[Any, Any, dict[Named, T]]],
) -> Mapping[Named, T]:
    broker = session.broker
    found: dict[Named, T] = {}
    elsewhere: defaultdict[NodeId, list[_Led]] = defaultdict(list)
    for topic, index in places:
        term, node = broker.partition_leader(topic, index)
        if node is not None and node != broker.node:
            elsewhere[node].append(_Led(topic.name, index, term))
        elif node is not None:
            try:
                found[topic.name, index] = here(broker.partition(topic.name, index))
            except KafkaesqueError:
                continue  # it is about to be led elsewhere, or was deleted

    async def asked(node: NodeId, led: Sequence[_Led]) -> dict[Named, T]:
        try:
            return {} if session.forward is None else await there(node, led)
        except KafkaesqueError:
            return {}

    for answer in await together(asked(node, led) for node, led in elsewhere.items()):
        found |= answer
    return found


async def _forwarded(session: Session, node: NodeId, request: object, version: int) -> Any:
    assert session.forward is not None, "the caller has looked"
    return await session.forward(node, request, version)


def _by_topic(led: Iterable[_Led]) -> Iterable[tuple[str, Sequence[_Led]]]:
    found: defaultdict[str, list[_Led]] = defaultdict(list)
    for one in led:
        found[one.name].append(one)
    return found.items()
