"""IncrementalAlterConfigs: change single settings of topics, brokers, groups and loggers."""

from collections.abc import Mapping
from functools import partial

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.errors import InvalidSetting
from kafkaesque.server.admin.broker_settings import alter_broker, check_is_this
from kafkaesque.server.admin.config_changes import altered
from kafkaesque.server.admin.config_operation import Operation, edited
from kafkaesque.server.admin.group_settings import alter_group
from kafkaesque.server.admin.loggers import alter_loggers
from kafkaesque.server.admin.resources import ResourceType, check_unique
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import InvalidRequest
from kafkaesque.server.requests.session import Session
from kafkaesque.topic_settings import CleanupPolicy, resolve, topic_setting, value_text
from kafkaesque.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    request: IncrementalAlterConfigsRequest, version: int, session: Session
) -> IncrementalAlterConfigsResponse:
    """Change each resource independently, or only check that it could be changed."""
    alter = partial(_alter, session=session, is_dry_run=request.validate_only)
    return IncrementalAlterConfigsResponse(
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


async def _alter(resource: AlterConfigsResource, *, session: Session, is_dry_run: bool) -> None:
    broker, name = session.broker, resource.resource_name
    check_unique([config.name for config in resource.configs], "setting")
    match resource.resource_type:
        case ResourceType.BROKER:
            await alter_broker(broker, name, resource.configs, is_dry_run=is_dry_run)
            return
        case ResourceType.BROKER_LOGGER:
            check_is_this(broker, name)
            alter_loggers(resource.configs, is_dry_run=is_dry_run)
            return
        case ResourceType.GROUP:
            await alter_group(broker, name, resource.configs, is_dry_run=is_dry_run)
            return
        case ResourceType.TOPIC:
            pass
        case other:
            raise InvalidRequest(f"resource type {other} has no settings")
    if is_dry_run:
        settings = changed(broker.catalog.topic(name).settings, resource.configs, broker)
        broker.catalog.set_settings(name, settings)
        return

    def change(answer: Answer) -> None:
        before = broker.catalog.topic(name).settings  # each time: others change them too
        after = changed(before, resource.configs, broker)
        broker.set_settings(name, after, answer, expected=before)

    await carried_out(change)


def changed(
    settings: Mapping[str, str], changes: tuple[AlterableConfig, ...], broker: Broker
) -> dict[str, str]:
    """Return settings after the changes; raises InvalidRequest, InvalidSetting."""
    after = dict(settings)
    for change in changes:
        kind = topic_setting(change.name).kind
        if change.config_operation == Operation.DELETE:
            after.pop(change.name, None)
            continue
        if change.value is None:
            raise InvalidRequest(f"{change.name} needs a value")
        match change.config_operation:
            case Operation.SET:
                after[change.name] = change.value
            case Operation.APPEND | Operation.SUBTRACT as operation:
                if kind not in (CleanupPolicy, str):
                    raise InvalidSetting(f"{change.name} is not a list")
                now = value_text(resolve(after, broker.live.defaults), change.name)
                after[change.name] = edited(now, change.value, Operation(operation))
            case other:
                raise InvalidRequest(f"unknown operation {other} on settings")
    return after
