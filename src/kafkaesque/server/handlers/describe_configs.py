"""DescribeConfigs: settings of topics, brokers, loggers and groups, with their sources."""

from collections.abc import Sequence

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.admin.broker_settings import (
    broker_settings,
    check_is_this,
    settings_of_all,
    settings_of_other,
)
from kafkaesque.server.admin.drain_setting import node_named
from kafkaesque.server.admin.group_settings import group_settings
from kafkaesque.server.admin.loggers import logger_settings
from kafkaesque.server.admin.resources import (
    ResourceType,
    Setting,
    described,
)
from kafkaesque.server.requests.addresses import shown
from kafkaesque.server.requests.errors import InvalidRequest, code_of, message_of
from kafkaesque.server.requests.session import Session
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
    """Describe each resource independently; an unknown one does not fail the others."""
    # Each resource once, however often it is named: settings take far more bytes than a name.
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
            if not wanted or setting.name in wanted  # clients send null or an empty list for "all"
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
            if node != session.broker.node:  # only that broker itself knows the rest
                return settings_of_other(session.broker, node)
            return broker_settings(session.broker, shown(session.host, session.port))
        case ResourceType.BROKER_LOGGER:
            check_is_this(session.broker, name)
            return logger_settings()
        case ResourceType.GROUP:
            return group_settings(session.broker, name)
        case other:
            raise InvalidRequest(f"resource type {other} has no settings")


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
