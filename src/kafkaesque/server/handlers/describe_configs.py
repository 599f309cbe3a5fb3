"""DescribeConfigs: every setting of topics and of this broker, and where its value comes from."""

from collections.abc import Sequence

from kafkaesque.errors import InvalidRequest, KafkaesqueError
from kafkaesque.server.broker_settings import (
    broker_settings,
    check_is_this,
    settings_of_all,
    settings_of_other,
)
from kafkaesque.server.draining import node_named
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.listening import shown
from kafkaesque.server.loggers import logger_settings
from kafkaesque.server.resources import (
    ResourceType,
    Setting,
    described,
    group_settings,
)
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


async def handle(
    request: DescribeConfigsRequest, version: int, session: Session
) -> DescribeConfigsResponse:
    """Describe each resource by itself; one that is unknown does not spoil the others."""
    # Each resource once, however often it is named: settings take far more than their owner's name.
    resources = {(one.resource_type, one.resource_name): one for one in request.resources}
    return DescribeConfigsResponse(
        results=tuple(_describe(resource, request, session) for resource in resources.values())
    )


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, session: Session
) -> DescribeConfigsResult:
    try:
        settings = _settings(resource, session)
    except KafkaesqueError as error:
        return DescribeConfigsResult(
            error_code=code_of(error),
            error_message=message_of(error),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )
    wanted = frozenset(resource.configuration_keys or ())
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            _result(setting, request)
            for setting in settings
            if not wanted or setting.name in wanted  # clients send null and nothing for "all"
        ),
    )


def _settings(resource: DescribeConfigsResource, session: Session) -> Sequence[Setting]:
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            return described(session.broker.topics.topic(name), session.broker)
        case ResourceType.BROKER if name == "":
            return settings_of_all(session.broker)
        case ResourceType.BROKER:
            node = node_named(name, session.broker)
            if node != session.broker.node:  # the rest only that broker itself can tell
                return settings_of_other(session.broker, node)
            return broker_settings(session.broker, shown(session.host, session.port))
        case ResourceType.BROKER_LOGGER:
            check_is_this(session.broker, name)
            return logger_settings()
        case ResourceType.GROUP:
            return group_settings(session.broker.config.groups)
        case other:
            raise InvalidRequest(f"there are no settings of resource type {other}")


def _result(setting: Setting, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = setting.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=setting.value,
        read_only=setting.is_read_only,
        config_source=setting.source,
        is_sensitive=False,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in synonyms
        ),
        config_type=setting.type,
        documentation=setting.documentation if request.include_documentation else None,
    )
