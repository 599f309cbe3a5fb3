"""Settings of whatever has some: groups, all brokers together, clients' metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kafkaesque.client.refusals import check, first
from kafkaesque.client.router import Router
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
"""The name of the resource whose settings hold for every broker."""

_SET = 0
_CHANGED_AT_RUN_TIME = frozenset({2, 3, 6, 7, 8})
"""Kafka's numbers for where such a value comes from: a broker, all brokers, a logger, metrics of
clients, a group. Those of topics are 1, the others are of files and defaults."""


class Kind(IntEnum):
    """What has settings, by Kafka's numbers; topics have an interface of their own."""

    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A setting that was changed while the cluster ran; without a value if it is secret."""

    name: str
    value: str | None


class Settings:
    """What can be asked and changed about settings; errors are those of `kafkaesque.errors`."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def names(self, kind: Kind) -> Sequence[str]:
        """Return what of this kind has settings; nothing if the brokers cannot say so."""
        if not self._router.question(lambda: self._router.serves(ListConfigResourcesRequest)):
            return ()
        request = ListConfigResourcesRequest(resource_types=(kind,))

        def ask() -> Sequence[str]:
            said = self._router.ask_any(request, ListConfigResourcesResponse)
            check(said.error_code, "the list of what has settings")
            found = {
                one.resource_name for one in said.config_resources if one.resource_type == kind
            }
            return sorted(found)

        return self._router.question(ask)

    def changed(self, kind: Kind, name: str) -> Sequence[Changed]:
        """Return the settings that somebody changed, by name."""
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
        self, kind: Kind, name: str, put: Mapping[str, str], *, is_dry_run: bool = False
    ) -> None:
        """Change some settings, or only find out whether they could be."""
        resource = AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                AlterableConfig(name=key, config_operation=_SET, value=text)
                for key, text in put.items()
            ),
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=is_dry_run)

        def ask() -> None:
            said = self._router.ask_controller(request, IncrementalAlterConfigsResponse)
            one = first(said.responses, subject(kind, name))
            check(one.error_code, subject(kind, name), one.error_message, is_change=not is_dry_run)

        if is_dry_run:
            self._router.question(ask)
        else:
            self._router.change(ask)


def subject(kind: Kind, name: str) -> str:
    """Return how sentences call it."""
    if kind is Kind.BROKER and name == ALL_BROKERS:
        return "all brokers"
    return f"{kind.name.lower().replace('_', ' ')} {name}"
