"""Settings of any resource: brokers, their loggers, groups, client metrics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kafkaesque.client.refusals import check, first
from kafkaesque.client.router import Router
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafkaesque.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkaesque.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

ALL_BROKERS = ""
"""The resource name for settings of every broker."""

_SET, _DELETE = 0, 1
_CHANGED_AT_RUN_TIME = frozenset({2, 3, 6, 7, 8})
"""Kafka's numbers for the sources of such values: a broker, all brokers, a logger, client metrics,
a group. Those of topics are 1, all others are files and defaults."""


class Kind(IntEnum):
    """Resources with settings, by Kafka's numbers; topics have their own interface."""

    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A setting changed at run time; secret ones have no value."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A setting in force; secret ones have no value."""

    name: str
    value: str | None
    source: int
    """Kafka's number for the source of the value."""
    is_read_only: bool


class Settings:
    """Queries and changes of settings; errors are from `client.errors` and the base."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def names(self, kind: Kind) -> Sequence[str]:
        """Return the resources of this kind with settings; none if brokers cannot list them."""
        if not self._router.question(lambda: self._router.serves(ListConfigResourcesRequest)):
            return ()
        request = ListConfigResourcesRequest(resource_types=(kind,))

        def ask() -> Sequence[str]:
            said = self._router.ask_any(request, ListConfigResourcesResponse)
            check(said.error_code, "the list of resources with settings")
            found = {
                one.resource_name for one in said.config_resources if one.resource_type == kind
            }
            return sorted(found)

        return self._router.question(ask)

    def list(self, kind: Kind, name: str) -> Sequence[Described]:
        """Return all settings, by name; a broker is asked for its own and its loggers'."""
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=(resource,))
        node = _node(kind, name)

        def ask() -> Sequence[Described]:
            if node is None:
                said = self._router.ask_any(request, DescribeConfigsResponse)
            else:
                said = self._router.ask_node(node, request, DescribeConfigsResponse)
            one = first(said.results, subject(kind, name))
            check(one.error_code, subject(kind, name), one.error_message)
            found = (
                Described(
                    name=each.name,
                    value=None if each.is_sensitive else each.value,
                    source=each.config_source,
                    is_read_only=each.read_only,
                )
                for each in one.configs
            )
            return sorted(found, key=lambda each: each.name)

        return self._router.question(ask)

    def changed(self, kind: Kind, name: str) -> Sequence[Changed]:
        """Return the settings changed at run time, by name."""
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=(resource,))

        def ask() -> Sequence[Changed]:
            said = self._router.ask_any(request, DescribeConfigsResponse)
            one = first(said.results, subject(kind, name))
            check(one.error_code, subject(kind, name), one.error_message)
            return sorted(
                (
                    Changed(name=each.name, value=None if each.is_sensitive else each.value)
                    for each in one.configs
                    if each.config_source in _CHANGED_AT_RUN_TIME and not each.read_only
                ),
                key=lambda each: each.name,
            )

        return self._router.question(ask)

    def alter(
        self,
        kind: Kind,
        name: str,
        put: Mapping[str, str],
        drop: Iterable[str] = (),
        *,
        is_dry_run: bool = False,
    ) -> None:
        """Set some settings and reset others, or only check whether that is allowed."""
        changes = [
            *(AlterableConfig(name=n, config_operation=_SET, value=v) for n, v in put.items()),
            *(AlterableConfig(name=n, config_operation=_DELETE, value=None) for n in drop),
        ]
        resource = AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=tuple(changes)
        )
        node = _node(kind, name)
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=is_dry_run)

        def ask() -> None:
            if node is None:
                said = self._router.ask_controller(request, IncrementalAlterConfigsResponse)
            else:
                said = self._router.ask_node(node, request, IncrementalAlterConfigsResponse)
            one = first(said.responses, subject(kind, name))
            check(one.error_code, subject(kind, name), one.error_message, is_change=not is_dry_run)

        if is_dry_run:
            self._router.question(ask)
        else:
            self._router.change(ask)


def _node(kind: Kind, name: str) -> NodeId | None:
    """Return the broker that must be asked itself; None if any can answer."""
    is_own = kind in (Kind.BROKER, Kind.BROKER_LOGGER) and name.isdecimal()
    return int(name) if is_own else None


def subject(kind: Kind, name: str) -> str:
    """Return the resource's name in messages."""
    if kind is Kind.BROKER and name == ALL_BROKERS:
        return "all brokers"
    if kind is Kind.BROKER_LOGGER:
        return f"broker {name}"
    return f"{kind.name.lower().replace('_', ' ')} {name}"
