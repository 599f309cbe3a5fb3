"""IncrementalAlterConfigs: single settings of topics, brokers and loggers change."""

from collections.abc import Mapping
from functools import partial

from kafkaesque.broker.broker import Answer, Broker
from kafkaesque.errors import InvalidRequest, InvalidSetting
from kafkaesque.server.altering import altered
from kafkaesque.server.broker_settings import alter_broker, check_is_this
from kafkaesque.server.loggers import alter_loggers
from kafkaesque.server.operation import Operation, edited
from kafkaesque.server.resources import ResourceType, check_unique
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import carried_out
from kafkaesque.topic_settings import CleanupPolicy, kind_of, resolve, value_text
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
    """Change each resource by itself, or only say whether it could be changed."""
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
        case ResourceType.TOPIC:
            pass
        case other:
            raise InvalidRequest(f"there are no settings of resource type {other}")
    if is_dry_run:
        settings = changed(broker.catalog.topic(name).settings, resource.configs, broker)
        broker.catalog.set_settings(name, settings)
        return

    def change(answer: Answer) -> None:
        before = broker.catalog.topic(name).settings  # anew each time: others change them, too
        after = changed(before, resource.configs, broker)
        broker.set_settings(name, after, answer, expected=before)

    await carried_out(change)


def changed(
    settings: Mapping[str, str], changes: tuple[AlterableConfig, ...], broker: Broker
) -> dict[str, str]:
    """Return settings after the changes; raises InvalidRequest, InvalidSetting."""
    after = dict(settings)
    for change in changes:
        kind = kind_of(change.name)
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
                    raise InvalidSetting(f"{change.name} is no list to add to or to take from")
                now = value_text(resolve(after, broker.live.defaults), change.name)
                after[change.name] = edited(now, change.value, Operation(operation))
            case other:
                raise InvalidRequest(f"there is no operation {other} on settings")
    return after
