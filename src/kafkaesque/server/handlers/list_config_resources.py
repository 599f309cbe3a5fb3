"""ListConfigResources: what has settings: topics, brokers and loggers, and groups with some."""

from collections.abc import Iterator

from kafkaesque.broker.broker import Broker
from kafkaesque.server.admin.resources import ResourceType
from kafkaesque.server.answers.broker_addresses import nodes_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

CLIENT_METRICS = ResourceType.CLIENT_METRICS
"""All that version 0 requests; client metrics subscriptions do not exist here."""


async def handle(
    request: ListConfigResourcesRequest, version: int, session: Session
) -> ListConfigResourcesResponse:
    """List the resources of the requested kinds; by default all."""
    wanted = {CLIENT_METRICS} if version == 0 else set(request.resource_types) or set(ResourceType)
    if not wanted <= set(ResourceType):
        return ListConfigResourcesResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=()
        )
    return ListConfigResourcesResponse(
        error_code=ErrorCode.NONE,
        config_resources=tuple(one for one in _all(session.broker) if one.resource_type in wanted),
    )


def _all(broker: Broker) -> Iterator[ConfigResource]:
    for name in sorted(broker.committed_catalog.machine.topics):
        yield ConfigResource(resource_name=name, resource_type=ResourceType.TOPIC)
    for kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        for node in nodes_of(broker):
            yield ConfigResource(resource_name=str(node), resource_type=kind)
    for name in sorted(broker.committed_catalog.machine.group_settings):
        yield ConfigResource(resource_name=name, resource_type=ResourceType.GROUP)
