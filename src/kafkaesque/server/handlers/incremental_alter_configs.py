"""IncrementalAlterConfigs: single settings of topics and brokers change, the others stay."""

from collections.abc import Mapping
from enum import IntEnum
from functools import partial

from kafkaesque.broker.broker import Answer
from kafkaesque.errors import InvalidRequest, InvalidSetting
from kafkaesque.server.altering import altered
from kafkaesque.server.draining import alter_broker
from kafkaesque.server.resources import ResourceType, check_alterable, check_unique
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


class Operation(IntEnum):
    """What is to be done with one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


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
    if resource.resource_type == ResourceType.BROKER:
        await alter_broker(broker, name, resource.configs, is_dry_run=is_dry_run)
        return
    check_alterable(resource.resource_type)
    if is_dry_run:
        settings = changed(broker.catalog.topic(name).settings, resource.configs)
        broker.catalog.set_settings(name, settings)
        return

    def change(answer: Answer) -> None:
        before = broker.catalog.topic(name).settings  # anew each time: others change them, too
        after = changed(before, resource.configs)
        broker.set_settings(name, after, answer, expected=before)

    await carried_out(change)


def changed(settings: Mapping[str, str], changes: tuple[AlterableConfig, ...]) -> dict[str, str]:
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
                now = value_text(resolve(after), change.name).split(",")
                after[change.name] = ",".join(_edited(now, change.value, operation))
            case other:
                raise InvalidRequest(f"there is no operation {other} on settings")
    return after


def _edited(items: list[str], value: str, operation: int) -> list[str]:
    named = [part.strip() for part in value.split(",")]
    kept = [item for item in items if item and item not in named]
    return [*kept, *named] if operation == Operation.APPEND else kept
