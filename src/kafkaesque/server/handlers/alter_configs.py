"""AlterConfigs: all settings of a topic are replaced; what is not named gets its default."""

from functools import partial

from kafkaesque.errors import InvalidSetting, KafkaesqueError
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.resources import check_alterable, check_not_in, check_unique, repeated_in
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import done
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(
    request: AlterConfigsRequest, version: int, session: Session
) -> AlterConfigsResponse:
    """Change each resource by itself, or only say whether it could be changed."""
    repeated = repeated_in((one.resource_type, one.resource_name) for one in request.resources)
    responses = []
    for resource in request.resources:
        code, message = ErrorCode.NONE, None
        try:
            check_not_in(repeated, (resource.resource_type, resource.resource_name), "resource")
            await _replace(resource, session, is_dry_run=request.validate_only)
        except KafkaesqueError as error:
            code, message = code_of(error), message_of(error)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return AlterConfigsResponse(responses=tuple(responses))


async def _replace(resource: AlterConfigsResource, session: Session, *, is_dry_run: bool) -> None:
    broker = session.broker
    check_alterable(resource.resource_type)
    check_unique([config.name for config in resource.configs], "setting")
    settings: dict[str, str] = {}
    for config in resource.configs:
        if config.value is None:
            raise InvalidSetting(f"{config.name} needs a value; leave it out to get the default")
        settings[config.name] = config.value
    if is_dry_run:
        broker.catalog.set_settings(resource.resource_name, settings)
    else:
        await done(partial(broker.set_settings, resource.resource_name, settings))
