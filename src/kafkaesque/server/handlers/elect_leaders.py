"""ElectLeaders: hand partitions over from their current to their preferred leaders.

A partition elects its leader on its own; no broker can appoint one. A request can only make the
leader hand over to the preferred one. Unclean elections are refused, because the new leader would
lack acknowledged records.
"""

import asyncio
from collections.abc import Iterable, Sequence
from enum import IntEnum

from msgspec import Struct

from kafkaesque.broker.broker import Broker
from kafkaesque.errors import LinkError, RaftError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.server.requests.callback_waits import WAIT_MS_MAX
from kafkaesque.server.requests.session import Session
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopic,
    ElectLeadersTopicResult,
)

LOOK_EVERY_MS = 20


class Election(IntEnum):
    """Kafka's numbers for election types."""

    PREFERRED = 0
    UNCLEAN = 1


class _Wanted(Struct):
    """One requested partition, and its result."""

    name: str
    index: int
    topic: Topic | None
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    def refuse(self, code: ErrorCode, text: str) -> None:
        self.code, self.text = code, text


async def handle(
    request: ElectLeadersRequest, version: int, session: Session
) -> ElectLeadersResponse:
    """Hand over every partition that can be, and wait until this broker sees the new leaders.

    With a timeout of 0 the response comes as soon as the handovers have started.
    """
    broker = session.broker
    wanted = _wanted(request, broker)
    handed = _sorted_out(wanted, request.election_type, broker)
    await asyncio.gather(*(_hand_over(leader, some, session) for leader, some in handed.items()))
    begun = [one for some in handed.values() for one in some if one.code is ErrorCode.NONE]
    if request.timeout_ms > 0:
        await _wait(begun, min(request.timeout_ms, WAIT_MS_MAX), session)
    if request.topic_partitions is None:  # then Kafka reports only those with an election
        wanted = [one for one in wanted if one.code is not ErrorCode.ELECTION_NOT_NEEDED]
    return ElectLeadersResponse(replica_election_results=tuple(_results(wanted)))


def _wanted(request: ElectLeadersRequest, broker: Broker) -> list[_Wanted]:
    topics = broker.catalog.topics
    if request.topic_partitions is None:
        return [
            _Wanted(topic.name, index, topic)
            for topic in topics.values()
            for index in range(topic.partitions)
        ]
    places = dict.fromkeys(
        (one.topic, index) for one in request.topic_partitions for index in one.partitions
    )
    return [_Wanted(name, index, topics.get(name)) for name, index in places]


def _sorted_out(
    wanted: Iterable[_Wanted], election: int, broker: Broker
) -> dict[NodeId, list[_Wanted]]:
    """Return the partitions that can be handed over, by leader; refuse the others."""
    handed: dict[NodeId, list[_Wanted]] = {}
    for one in wanted:
        topic, index = one.topic, one.index
        if topic is None or not 0 <= index < topic.partitions:
            one.refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown partition")
            continue
        leader = broker.partition_leader(topic, index).node
        preferred = topic.preferred(index)
        is_led = leader is not None and broker.replicas.is_reachable(leader)
        if election == Election.UNCLEAN and not is_led:
            one.refuse(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                "an unclean election would lose acknowledged records: bring its brokers back, "
                "or if they are gone for good see `kafkaesque cluster recover`",
            )
        elif election not in (Election.PREFERRED, Election.UNCLEAN):
            one.refuse(ErrorCode.INVALID_REQUEST, f"unknown election type {election}")
        elif is_led and (election == Election.UNCLEAN or leader == preferred):
            one.refuse(ErrorCode.ELECTION_NOT_NEEDED, f"broker {leader} already leads it")
        elif leader is None or not is_led:
            one.refuse(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "it has no leader that could hand over"
            )
        elif preferred not in broker.leaders.in_sync(group_of(topic, index)):
            one.refuse(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"its preferred leader, broker {preferred}, is not in sync",
            )
        else:
            handed.setdefault(leader, []).append(one)
    return handed


async def _hand_over(leader: NodeId, some: Sequence[_Wanted], session: Session) -> None:
    if leader == session.broker.node:
        for one in some:
            _transfer(one, session.broker)
    elif session.forward is None:
        for one in some:
            one.refuse(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"broker {leader} leads it")
    else:
        await _ask(leader, some, session)


def _transfer(one: _Wanted, broker: Broker) -> None:
    assert one.topic is not None, "it was found"
    replica = broker.replicas.by_group.get(group_of(one.topic, one.index))
    try:
        if replica is not None:
            replica.transfer(one.topic.preferred(one.index))
    except RaftError as error:
        one.refuse(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"it cannot be handed over: {error}")


async def _ask(leader: NodeId, some: Sequence[_Wanted], session: Session) -> None:
    """Make another broker hand over partitions that it leads."""
    by_topic: dict[str, list[int]] = {}
    for one in some:
        by_topic.setdefault(one.name, []).append(one.index)
    request = ElectLeadersRequest(
        topic_partitions=tuple(
            ElectLeadersTopic(topic=name, partitions=tuple(indexes))
            for name, indexes in by_topic.items()
        ),
        timeout_ms=0,
    )
    assert session.forward is not None
    told: dict[tuple[str, int], ElectLeadersPartitionResult] = {}
    try:
        answer = await session.forward(leader, request, 2)
        assert isinstance(answer, ElectLeadersResponse)
        told = {
            (topic.topic, one.partition_id): one
            for topic in answer.replica_election_results
            for one in topic.partition_result
        }
    except LinkError as error:
        for one in some:
            one.refuse(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"broker {leader}: {error}")
        return
    for one in some:
        found = told.get((one.name, one.index))
        # Its leader has handed over on its own meanwhile: then there is nothing to refuse.
        if found is not None and found.error_code != ErrorCode.ELECTION_NOT_NEEDED:
            one.code, one.text = ErrorCode(found.error_code), found.error_message


async def _wait(begun: Sequence[_Wanted], wait_ms: int, session: Session) -> None:
    """Wait until the preferred leaders lead; the rest get a timeout error."""
    left = list(begun)
    for _ in range(wait_ms // LOOK_EVERY_MS + 1):
        left = [one for one in left if not _is_led(one, session.broker)]
        if not left or session.stopping.is_begun:
            break
        await asyncio.sleep(LOOK_EVERY_MS / 1000)
    for one in left:
        one.refuse(ErrorCode.REQUEST_TIMED_OUT, "its preferred leader does not lead it yet")


def _is_led(one: _Wanted, broker: Broker) -> bool:
    assert one.topic is not None, "it was found"
    leader = broker.partition_leader(one.topic, one.index).node
    return leader == one.topic.preferred(one.index)


def _results(wanted: Iterable[_Wanted]) -> Iterable[ElectLeadersTopicResult]:
    by_topic: dict[str, list[ElectLeadersPartitionResult]] = {}
    for one in wanted:
        result = ElectLeadersPartitionResult(
            partition_id=one.index, error_code=one.code, error_message=one.text
        )
        by_topic.setdefault(one.name, []).append(result)
    for name, results in by_topic.items():
        yield ElectLeadersTopicResult(topic=name, partition_result=tuple(results))
