"""ElectLeaders: partitions are handed to their preferred leaders, by whoever leads them now.

A partition elects its leader by itself, and nobody can appoint one. What can be asked for is that
its leader hands over to the preferred one. An unclean election would make a leader of a replica
that lacks what was acknowledged: there is none.
"""

import asyncio
from collections.abc import Iterable, Sequence
from enum import IntEnum

from msgspec import Struct

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.topics import group_of
from kafkaesque.errors import LinkError, RaftError
from kafkaesque.machines.catalog import Topic
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import WAIT_MS_MAX
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
    """Kafka's numbers for the kinds of elections."""

    PREFERRED = 0
    UNCLEAN = 1


class _Wanted(Struct):
    """One partition that was asked for, and what became of it."""

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
    """Have every partition handed over that can be, and wait until that shows here.

    With no time to wait it is answered when the handing over has begun.
    """
    broker = session.broker
    wanted = _wanted(request, broker)
    handed = _sorted_out(wanted, request.election_type, broker)
    await asyncio.gather(*(_hand_over(leader, some, session) for leader, some in handed.items()))
    begun = [one for some in handed.values() for one in some if one.code is ErrorCode.NONE]
    if request.timeout_ms > 0:
        await _wait(begun, min(request.timeout_ms, WAIT_MS_MAX), session)
    if request.topic_partitions is None:  # then Kafka tells only of those with an election
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
    """Return which partitions can be handed over, by who leads them; refuse the others."""
    handed: dict[NodeId, list[_Wanted]] = {}
    for one in wanted:
        topic, index = one.topic, one.index
        if topic is None or not 0 <= index < topic.partitions:
            one.refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
            continue
        leader = broker.partition_leader(topic, index).node
        preferred = topic.preferred(index)
        is_led = leader is not None and broker.replicas.is_reachable(leader)
        if election == Election.UNCLEAN and not is_led:
            one.refuse(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                "an unclean election would lose what was acknowledged: bring its brokers back, "
                "or if they are gone for good see `kafkaesque cluster recover`",
            )
        elif election not in (Election.PREFERRED, Election.UNCLEAN):
            one.refuse(ErrorCode.INVALID_REQUEST, f"there is no election of type {election}")
        elif is_led and (election == Election.UNCLEAN or leader == preferred):
            one.refuse(ErrorCode.ELECTION_NOT_NEEDED, f"broker {leader} leads it already")
        elif leader is None or not is_led:
            one.refuse(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "nobody leads it who could hand over"
            )
        elif preferred not in broker.leaders.in_sync(group_of(topic, index)):
            one.refuse(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"broker {preferred} is its preferred leader, and not in sync",
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
            broker.flush()
    except RaftError as error:
        one.refuse(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"it cannot be handed over: {error}")


async def _ask(leader: NodeId, some: Sequence[_Wanted], session: Session) -> None:
    """Have another broker hand over what it leads."""
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
        # Who led it has handed over by itself meanwhile: then there is nothing to refuse.
        if found is not None and found.error_code != ErrorCode.ELECTION_NOT_NEEDED:
            one.code, one.text = ErrorCode(found.error_code), found.error_message


async def _wait(begun: Sequence[_Wanted], wait_ms: int, session: Session) -> None:
    """Wait until all are led as they should be; whatever is not in time is told as such."""
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
