"""AlterConfigs: replace all settings of a topic, broker or group; the others get their defaults."""

from functools import partial

from kafkaesque.errors import InvalidSetting
from kafkaesque.server.admin.broker_settings import replace_settings
from kafkaesque.server.admin.config_changes import altered
from kafkaesque.server.admin.group_settings import replace_group_settings
from kafkaesque.server.admin.resources import ResourceType, check_unique
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import InvalidRequest
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

_REPLACEABLE = frozenset({ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP})


async def handle(
    request: AlterConfigsRequest, version: int, session: Session
) -> AlterConfigsResponse:
    """Change each resource independently, or only check that it could be changed."""
    alter = partial(_replace, session=session, is_dry_run=request.validate_only)
    return AlterConfigsResponse(
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, code, message in await altered(request.resources, alter)
        )
    )


async def _replace(resource: AlterConfigsResource, *, session: Session, is_dry_run: bool) -> None:
    broker, name = session.broker, resource.resource_name
    if resource.resource_type not in _REPLACEABLE:
        kind = resource.resource_type
        raise InvalidRequest(f"settings of resource type {kind} cannot be replaced as a whole")
    check_unique([config.name for config in resource.configs], "setting")
    settings: dict[str, str] = {}
    for config in resource.configs:
        if config.value is None:
            raise InvalidSetting(f"{config.name} needs a value; leave it out to get the default")
        settings[config.name] = config.value
    if resource.resource_type == ResourceType.BROKER:
        await replace_settings(broker, name, settings, is_dry_run=is_dry_run)
    elif resource.resource_type == ResourceType.GROUP:
        await replace_group_settings(broker, name, settings, is_dry_run=is_dry_run)
    elif is_dry_run:
        broker.catalog.set_settings(name, settings)
    else:
        await carried_out(partial(broker.set_settings, name, settings))
