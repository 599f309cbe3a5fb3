"""What share groups have done, as administrators read and change it, wherever it is coordinated.

The group's coordinator answers administrators, but the state is kept by partition in
`__share_group_state`, whose leaders may be other brokers. A question that meets an election is
repeated for a while: clients take such an error of a single partition as final.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from kafkaesque.broker.queues.share_calls import SHARE_TOPIC, index_of
from kafkaesque.errors import NotCoordinator, OutcomeUnknown
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.groups.group_commands import DescribeGroups, GroupView
from kafkaesque.machines.groups.group_errors import GroupNotEmpty, UnknownGroup
from kafkaesque.machines.queues.queue_errors import FencedTerm
from kafkaesque.machines.queues.share_commands import (
    Adopt,
    AdoptedBefore,
    DeleteShareGroup,
    SetStart,
    ShareCommand,
    ShareOffsets,
    ShareStart,
)
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.server.answers.ask_coordinator import answered, ask_group
from kafkaesque.server.answers.partition_ends import Began, terms_of
from kafkaesque.server.requests.callback_waits import (
    LEADER_WAIT_S_MAX,
    done,
    is_current,
    together,
)
from kafkaesque.server.requests.errors import ShareStateAway
from kafkaesque.server.requests.session import Session
from kafkaesque.types import Offset

_LOOK_S = 0.1

SERIAL = 0
"""Lower than any that a leader uses."""


async def share_group(session: Session, name: str) -> GroupView:
    """Return a share group as its coordinator knows it; raises UnknownGroup, NotCoordinator."""
    found = await ask_group(session, name, DescribeGroups(groups=(name,)))
    if not found.groups or found.groups[0].shares is None:
        raise UnknownGroup(f"there is no share group {name}")
    return found.groups[0]


def check_is_empty(group: GroupView) -> None:
    """Raise GroupNotEmpty if a share group has members."""
    if group.shares is not None and group.shares.members:
        raise GroupNotEmpty(f"share group {group.group} has members")


async def topics_named(session: Session, names: Iterable[str]) -> dict[str, Topic]:
    """Return the topics with these names; those that surely do not exist are missing."""
    wanted = list(names)
    broker = session.broker
    if not all(name in broker.catalog.topics for name in wanted) and not await is_current(broker):
        raise ShareStateAway("this broker cannot tell now whether the topics exist")
    known = broker.catalog.topics
    return {name: known[name] for name in wanted if name in known}


async def starts_of(
    session: Session, group: str, places: Sequence[Place] | None
) -> dict[Place, ShareStart]:
    """Return where a group begins; partitions in which it has no state are missing."""
    topic = await _topic(session)
    if topic is None:
        return {}
    asked = [
        _asked(session, topic, index, ShareOffsets(group=group, places=some))
        for index, some in _by_index(topic, places).items()
    ]
    return {place: start for told in await together(asked) for place, start in told.starts.items()}


async def delete_state(session: Session, group: str, places: Sequence[Place] | None) -> Set[Place]:
    """Delete what a group has done, everywhere or in these partitions; returns where it had some.

    After an error some of it may be deleted; it may be repeated.
    """
    topic = await _topic(session)
    if topic is None:
        return frozenset()
    asked = [
        _asked(session, topic, index, DeleteShareGroup(group=group, places=some))
        for index, some in _by_index(topic, places).items()
    ]
    return {place for told in await together(asked) for place in told.places}


async def set_start(
    session: Session, group: str, topic: Topic, partition: int, offset: Offset, began: Began
) -> None:
    """Let a group begin again from an offset of a partition.

    The start is one of the current leader's log. If no member has come in its term, that leader has
    not adopted the state yet, and would then take the start for one of a log that was cut. So the
    state is adopted here in its name, which changes nothing if it has been.
    """
    await done(session.broker.shares.desk.coordinators.when_ready)
    states = await _topic(session)
    if states is None:
        raise ShareStateAway("the topic of share state is being created")
    place = topic.topic_id, partition
    index = index_of(place, states.partitions)
    told = await _adopted(session, states, index, place, began)
    if told is not None:
        found = await terms_of(session, [(topic, partition)], told.term)
        if (topic.name, partition) not in found:
            raise ShareStateAway(f"partition {partition} of {topic.name} has no leader now")
        await _adopted(session, states, index, place, found[topic.name, partition])
    await _asked(session, states, index, SetStart(place=place, group=group, offset=offset))


async def _adopted(
    session: Session, states: Topic, index: int, place: Place, began: Began
) -> AdoptedBefore | None:
    """Adopt the state of a partition in the name of its leader; returns what must be looked up."""
    command = Adopt(
        place=place, term=began.term, serial=SERIAL, since=began.since, first=began.first
    )
    try:
        answer = await _asked(session, states, index, command)
    except FencedTerm:  # the leader, or a newer one, has adopted it
        return None
    return answer if isinstance(answer, AdoptedBefore) else None


async def _topic(session: Session) -> Topic | None:
    """Return the topic that keeps the state; None if there surely never was any."""
    return (await topics_named(session, (SHARE_TOPIC,))).get(SHARE_TOPIC)


def _by_index(
    topic: Topic, places: Sequence[Place] | None
) -> Mapping[int, tuple[Place, ...] | None]:
    """Return which partitions of the topic keep the state of these places, or of all."""
    if places is None:
        return dict.fromkeys(range(topic.partitions))
    found: dict[int, tuple[Place, ...]] = {}
    for place in places:
        index = index_of(place, topic.partitions)
        found[index] = (*found.get(index, ()), place)
    return found


async def _asked(session: Session, topic: Topic, index: int, command: ShareCommand) -> Any:
    """Have a command carried out by one coordinator; any of them may be carried out twice."""
    desk = session.broker.shares.desk
    loop = asyncio.get_running_loop()
    late_s = loop.time() + LEADER_WAIT_S_MAX
    while True:
        try:
            return await answered(partial(desk.ask_at, topic, index, command))
        except (NotCoordinator, OutcomeUnknown) as error:
            if loop.time() >= late_s or session.stopping.is_begun:
                where = f"partition {index} of {SHARE_TOPIC}"
                raise ShareStateAway(f"{where} has no leader that answers: {error}") from None
        await asyncio.sleep(_LOOK_S)
