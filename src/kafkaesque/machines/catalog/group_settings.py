"""Decides on settings of single groups.

Like the deciding methods of `Catalog`, this looks at the state and returns records.
"""

from collections.abc import Mapping

from kafkaesque.errors import InvalidSetting
from kafkaesque.group_settings import resolve_group
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_errors import SettingsChanged
from kafkaesque.machines.catalog.catalog_records import group_settings_record
from kafkaesque.machines.catalog.features import CATALOG_VERSION, GROUP_SETTINGS_SINCE
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.text_size import utf8_bytes

GROUPS_MAX = 10_000
"""Groups with settings of their own; every broker keeps them all."""

GROUP_NAME_BYTES_MAX = 1_000


def set_group_settings(
    catalog: Catalog,
    group: str,
    settings: Mapping[str, str],
    expected: Mapping[str, str] | None = None,
) -> list[MachineRecord]:
    """Decide on new settings that replace all those of a group.

    Raises InvalidSetting; SettingsChanged if the current ones are not `expected`.
    """
    if not group or utf8_bytes(group) > GROUP_NAME_BYTES_MAX:
        raise InvalidSetting("the group's name is empty or too long")
    resolve_group(settings)
    level = catalog.finalized.levels[CATALOG_VERSION]
    if level < GROUP_SETTINGS_SINCE:
        raise InvalidSetting(
            "older brokers of the cluster do not know group settings: when all are upgraded, "
            f"run `kafkaesque cluster upgrade --yes` ({CATALOG_VERSION} is {level} and must be "
            f"{GROUP_SETTINGS_SINCE})"
        )
    before = catalog.group_settings.get(group, {})
    if expected is not None and before != expected:
        raise SettingsChanged(f"the settings of group {group} were changed meanwhile")
    if not before and settings and len(catalog.group_settings) >= GROUPS_MAX:
        raise InvalidSetting(f"at most {GROUPS_MAX} groups have settings of their own")
    return [] if settings == before else [group_settings_record(group, settings)]
