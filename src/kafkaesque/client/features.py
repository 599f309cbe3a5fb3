"""The feature levels of a cluster, and how far they could be raised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kafkaesque.client.errors import ClientError
from kafkaesque.client.refusals import check
from kafkaesque.client.router import Router
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkaesque.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_SOFTWARE = "kafkaesque"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureInfo:
    """One feature of the cluster."""

    name: str
    finalized: int
    """The level at which all brokers work; 0 for none."""
    possible: int
    """The highest level that every answering broker supports; 0 if one does not know it."""


class Features:
    """Queries and changes of feature levels; errors are from `client.errors` and the base."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def list(self) -> Sequence[FeatureInfo]:
        """Return every feature, by name; brokers that do not answer are ignored."""
        finalized: dict[str, int] = {}
        supported: list[Mapping[str, int]] = []
        epoch = -1
        for node in self._router.question(self._router.nodes):
            try:
                said = self._router.once(partial(self._ask, node))
            except ClientError:
                continue  # it is away, or was removed meanwhile
            if said.finalized_features_epoch > epoch:
                epoch = said.finalized_features_epoch
                finalized = {one.name: one.max_version_level for one in said.finalized_features}
            supported.append({one.name: one.max_version for one in said.supported_features})
        return [
            FeatureInfo(
                name=name,
                finalized=finalized.get(name, 0),
                possible=min(levels.get(name, 0) for levels in supported),
            )
            for name in sorted(set().union(*supported))
        ]

    def finalize(self, levels: Mapping[str, int], *, is_dry_run: bool = False) -> None:
        """Raise features to these levels, all or none; raises the reason if that fails."""
        request = UpdateFeaturesRequest(
            timeout_ms=self._router.config.request_ms_max,
            feature_updates=tuple(
                FeatureUpdateKey(feature=name, max_version_level=level)
                for name, level in levels.items()
            ),
            validate_only=is_dry_run,
        )

        def ask() -> None:
            said = self._router.ask_controller(request, UpdateFeaturesResponse)
            check(said.error_code, "the levels", said.error_message, is_change=True)

        self._router.change(ask)

    def _ask(self, node: NodeId) -> ApiVersionsResponse:
        request = ApiVersionsRequest(
            client_software_name=_SOFTWARE, client_software_version=_SOFTWARE
        )
        return self._router.ask_node(node, request, ApiVersionsResponse)
