"""CreateTopics: create topics independently."""

from collections.abc import Mapping, Sequence
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.errors import InvalidSetting, KafkaesqueError
from kafkaesque.machines.catalog.catalog_decider import REPLICATION
from kafkaesque.machines.catalog.catalog_errors import InvalidAssignment, InvalidReplicas
from kafkaesque.server.admin.resources import (
    check_not_in,
    check_unique,
    repeated_in,
    settings_of_new,
)
from kafkaesque.server.answers.assignments import check_assignments
from kafkaesque.server.answers.broker_addresses import nodes_of
from kafkaesque.server.requests.callback_waits import carried_out, together
from kafkaesque.server.requests.errors import InvalidRequest, code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

DEFAULT = -1


async def handle(
    request: CreateTopicsRequest, version: int, session: Session
) -> CreateTopicsResponse:
    """Create all valid topics, and report errors for the rest."""
    repeated = repeated_in(topic.name for topic in request.topics)

    async def created(topic: CreatableTopic) -> CreatableTopicResult:
        try:
            check_not_in(repeated, topic.name, "topic")
            return await _create(topic, session, is_dry_run=request.validate_only)
        except KafkaesqueError as error:
            return CreatableTopicResult(
                name=topic.name, error_code=code_of(error), error_message=message_of(error)
            )

    wanted = {topic.name: topic for topic in request.topics}.values()
    return CreateTopicsResponse(topics=tuple(await together(map(created, wanted))))


async def _create(
    topic: CreatableTopic, session: Session, *, is_dry_run: bool
) -> CreatableTopicResult:
    broker = session.broker
    nodes = nodes_of(broker)
    count = _partitions(topic, broker.config.partitions_default, nodes)
    settings = _settings(topic)
    topic_id = NO_UUID
    replication = topic.replication_factor
    assignment = sorted(topic.assignments, key=lambda one: one.partition_index)
    if is_dry_run:
        broker.catalog.create_topic(topic.name, count, topic_id, settings)
        if replication == DEFAULT:
            replication = min(REPLICATION, len(nodes))
    else:
        create = partial(
            broker.create_topic,
            topic.name,
            count,
            settings,
            replication=replication,
            assignment=[one.broker_ids for one in assignment],
        )
        await carried_out(create)
        made = broker.catalog.topics.get(topic.name)
        if made is not None:  # else it was deleted again meanwhile
            topic_id, replication = made.topic_id, len(made.replicas[0])
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=count,
        replication_factor=len(assignment[0].broker_ids) if assignment else replication,
        configs=_told(settings, broker),
    )


def _partitions(topic: CreatableTopic, default: int, nodes: Sequence[NodeId]) -> int:
    """Return the partition count; raises if these brokers cannot hold the topic."""
    if topic.assignments:
        if topic.num_partitions != DEFAULT or topic.replication_factor != DEFAULT:
            raise InvalidRequest(
                "give an assignment or numbers of partitions and replicas, not both"
            )
        indexes = sorted(assignment.partition_index for assignment in topic.assignments)
        if indexes != list(range(len(indexes))):
            raise InvalidAssignment("assign partitions from 0 upwards, each once")
        check_assignments([a.broker_ids for a in topic.assignments], nodes)
        return len(indexes)
    wanted = topic.replication_factor
    if wanted != DEFAULT and not 1 <= wanted <= len(nodes):
        there_is = "there is one" if len(nodes) == 1 else f"there are {len(nodes)}"
        raise InvalidReplicas(f"{wanted} replicas need as many brokers; {there_is}")
    return default if topic.num_partitions == DEFAULT else topic.num_partitions


def _settings(topic: CreatableTopic) -> dict[str, str]:
    check_unique([config.name for config in topic.configs], "setting")
    settings: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise InvalidSetting(f"{config.name} needs a value; leave it out to get the default")
        settings[config.name] = config.value
    return settings


def _told(settings: Mapping[str, str], broker: Broker) -> tuple[CreatableTopicConfigs, ...]:
    return tuple(
        CreatableTopicConfigs(
            name=setting.name,
            value=setting.value,
            read_only=setting.is_read_only,
            config_source=setting.source,
            is_sensitive=False,
        )
        for setting in settings_of_new(settings, broker)
    )
