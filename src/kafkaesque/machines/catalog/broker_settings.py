"""Decides on broker settings at run time: for one broker, or for all.

Like the deciding methods of `Catalog`, these look at the state and return records.
"""

from collections.abc import Mapping

from kafkaesque.dynamic_settings import check
from kafkaesque.errors import InvalidSetting
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_errors import SettingsChanged, UnknownBroker
from kafkaesque.machines.catalog.catalog_records import settings_record
from kafkaesque.machines.catalog.features import CATALOG_VERSION, SETTINGS_SINCE
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import NodeId

ALL_BROKERS: NodeId = 0
"""Stands for all brokers; real ids start at 1."""


def settings_in_force(catalog: Catalog, node: NodeId) -> Mapping[str, str]:
    """Return the run-time settings in force for a broker: its own override those of all."""
    of_all = catalog.broker_settings.get(ALL_BROKERS, {})
    return {**of_all, **catalog.broker_settings.get(node, {})}


def can_be_kept(catalog: Catalog) -> bool:
    """Return whether all brokers of the cluster know broker settings."""
    return catalog.finalized.levels[CATALOG_VERSION] >= SETTINGS_SINCE


def set_broker_settings(
    catalog: Catalog,
    node: NodeId,
    settings: Mapping[str, str],
    expected: Mapping[str, str] | None = None,
) -> list[MachineRecord]:
    """Decide on new settings that replace all those of a broker, or of `ALL_BROKERS`.

    Raises UnknownBroker, InvalidSetting; SettingsChanged if the current ones are not `expected`.
    """
    # A broker on its own does not register.
    if node != ALL_BROKERS and catalog.brokers and node not in catalog.brokers:
        raise UnknownBroker(f"there is no broker {node}")
    for name, text in settings.items():
        check(name, text)
    if not can_be_kept(catalog):
        level = catalog.finalized.levels[CATALOG_VERSION]
        raise InvalidSetting(
            "older brokers of the cluster do not know broker settings: when all are upgraded, "
            f"run `kafkaesque cluster upgrade --yes` ({CATALOG_VERSION} is {level} and must be "
            f"{SETTINGS_SINCE})"
        )
    before = catalog.broker_settings.get(node, {})
    if expected is not None and before != expected:
        raise SettingsChanged(f"the settings of broker {node} were changed meanwhile")
    return [] if settings == before else [settings_record(node, settings)]
