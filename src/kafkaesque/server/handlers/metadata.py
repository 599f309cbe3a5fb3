"""Metadata: where topics are; a named topic may be created by the request."""

from collections.abc import Collection, Iterable

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.topics import Slot
from kafkaesque.broker.presence import is_cut_off, present
from kafkaesque.errors import (
    KafkaesqueError,
    OutcomeUnknown,
    RaftError,
    TopicExists,
)
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.server.answers import allowed_operations
from kafkaesque.server.answers.broker_addresses import all_places, controller
from kafkaesque.server.answers.partition_facts import facts_of, led, slots_of
from kafkaesque.server.answers.redirects import send_on_if_cut_off
from kafkaesque.server.requests.callback_waits import is_current, topic_created
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NULL_NAMES_SINCE = 12
"""Before this version a response cannot omit the name."""


async def handle(request: MetadataRequest, version: int, session: Session) -> MetadataResponse:
    """Describe the requested topics; all if none is named."""
    broker = session.broker
    # Before version 1 an empty list meant all topics; since then null does.
    wants_all = request.topics is None or (version == 0 and not request.topics)
    if wants_all:
        # As committed: consumers with patterns treat a listed topic as existing, and an unlisted
        # one as deleted.
        committed = broker.committed_catalog.machine
        topics = [_describe(topic, session) for topic in committed.topics.values()]
    else:
        assert request.topics is not None
        may_create = request.allow_auto_topic_creation and broker.config.auto_create_topics
        no_name = None if version >= NULL_NAMES_SINCE else ""
        # Each topic once, however often it is named: a response may be far larger than its request.
        wanted_once = {
            one.topic_id if one.name is None else one.name: one for one in request.topics
        }
        all_wanted = tuple(wanted_once.values())
        is_sure = not _may_be_missing(all_wanted, may_create, broker) or await is_current(broker)
        found = [await _find(one, session, may_create, no_name, is_sure) for one in all_wanted]
        topics = await _led(found, session)
        if topics:  # a client that asks for all or none may stay
            send_on_if_cut_off(session)
    may_tell = request.include_topic_authorized_operations
    session.controller_told()
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=one.node, host=one.host, port=one.port, rack=one.rack)
            for one in all_places(session)
        ),
        cluster_id=broker.cluster_id,
        controller_id=controller(broker),
        topics=tuple(topics) if not may_tell else tuple(map(_with_operations, topics)),
        cluster_authorized_operations=allowed_operations.told(
            request.include_cluster_authorized_operations, allowed_operations.ON_THE_CLUSTER
        ),
    )


def _with_operations(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    if topic.error_code:
        return topic
    return allowed_operations.added(topic, topic_authorized_operations=allowed_operations.ON_TOPICS)


def _may_be_missing(
    wanted: Iterable[MetadataRequestTopic],
    may_create: bool,  # noqa: FBT001
    broker: Broker,
) -> bool:
    """Whether any of these would be reported missing; topics that the request creates are not."""
    catalog = broker.catalog
    return any(
        catalog.topic_by_id(one.topic_id) is None
        if one.name is None
        else not may_create and one.name not in catalog.topics
        for one in wanted
    )


async def _led(
    topics: list[MetadataResponseTopic], session: Session
) -> list[MetadataResponseTopic]:
    """Wait for missing leaders, then describe those topics again."""
    broker = session.broker
    vacant = {one.topic_id for one in topics if any(p.error_code for p in one.partitions)}
    if not vacant or is_cut_off(broker):
        return topics
    by_id = {topic_id: broker.catalog.topic_by_id(topic_id) for topic_id in vacant}
    await led(broker, [topic for topic in by_id.values() if topic is not None])
    by_id = {topic_id: broker.catalog.topic_by_id(topic_id) for topic_id in vacant}
    again = {key: _describe(topic, session) for key, topic in by_id.items() if topic is not None}
    return [again.get(one.topic_id, one) for one in topics]


async def _find(
    wanted: MetadataRequestTopic,
    session: Session,
    may_create: bool,  # noqa: FBT001
    no_name: str | None,
    is_sure: bool,  # noqa: FBT001
) -> MetadataResponseTopic:
    """Describe a topic; report none as missing unless this broker `is_sure`."""
    later = ErrorCode.LEADER_NOT_AVAILABLE
    catalog = session.broker.catalog
    if wanted.name is None:
        by_id = catalog.topic_by_id(wanted.topic_id)
        if by_id is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if is_sure else later
            return _missing(no_name, wanted.topic_id, code)
        return _describe(by_id, session)
    if wanted.name not in catalog.topics:
        if not may_create:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_sure else later
            return _missing(wanted.name, NO_UUID, code)
        try:
            count = session.broker.config.partitions_default
            await topic_created(session.broker, wanted.name, count, {})
        except TopicExists:
            pass  # another client created it at the same time
        except (RaftError, OutcomeUnknown):
            # The catalog has no leader now. librdkafka treats any other code as final.
            return _missing(wanted.name, NO_UUID, later)
        except KafkaesqueError as error:
            return _missing(wanted.name, NO_UUID, code_of(error))
    made = session.broker.catalog.topics.get(wanted.name)
    if made is None:  # it was deleted again
        return _missing(wanted.name, NO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return _describe(made, session)


def _describe(topic: Topic, session: Session) -> MetadataResponseTopic:
    broker = session.broker
    committed = broker.committed_catalog.machine.topic_by_id(topic.topic_id)
    if committed is None:
        # Decided but not committed: no client learns its id yet, because the name may still lead to
        # a deleted predecessor.
        return _missing(topic.name, NO_UUID, ErrorCode.LEADER_NOT_AVAILABLE)
    there = present(broker)
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=committed.name,
        topic_id=committed.topic_id,
        is_internal=committed.is_internal,
        partitions=tuple(
            _describe_partition(broker, committed, index, slot, there)
            for index, slot in enumerate(slots_of(broker, committed))
        ),
    )


def _describe_partition(
    broker: Broker, topic: Topic, index: int, slot: Slot, there: Collection[NodeId]
) -> MetadataResponsePartition:
    facts = facts_of(broker, topic, index, slot, there)
    return MetadataResponsePartition(
        error_code=facts.code,
        partition_index=index,
        leader_id=facts.leader,
        leader_epoch=facts.term,
        replica_nodes=facts.replicas,
        isr_nodes=facts.in_sync,
        offline_replicas=facts.offline,
    )


def _missing(name: str | None, topic_id: bytes, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id, partitions=())
