"""ListConfigResources: the topics and brokers, which are what has settings here."""

from collections.abc import Iterator

from kafkaesque.broker.broker import Broker
from kafkaesque.server.places import nodes_of
from kafkaesque.server.resources import ResourceType
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

CLIENT_METRICS = ResourceType.CLIENT_METRICS
"""All that version 0 asks for; nobody can subscribe to clients' metrics here, so there are none."""


async def handle(
    request: ListConfigResourcesRequest, version: int, session: Session
) -> ListConfigResourcesResponse:
    """Name the resources of the kinds asked for, of all kinds if none is named."""
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
