"""The state of the whole cluster in a backup: named sections, each with its own version.

Sections are always saved if not empty, but restored only on demand: restoring a topic should not
change the cluster. Only this module knows what sections mean; another kind of state gets a row in
`KINDS`, and versions that do not know it refuse a backup that holds it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from kafkaesque.backup.errors import BackupError, DamagedBackup
from kafkaesque.backup.manifest import MANIFEST_NAME, Section
from kafkaesque.client.admin import Admin
from kafkaesque.client.settings import ALL_BROKERS, Kind, subject

FEATURES = "features"
SETTINGS = "settings"

T = TypeVar("T")


class Levels(msgspec.Struct, frozen=True, kw_only=True):
    """The section `features`: the cluster's level of each feature."""

    levels: Mapping[str, int]


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """One of `holders` of the section `settings`."""

    kind: str
    name: str
    settings: Mapping[str, str]


class Holders(msgspec.Struct, frozen=True, kw_only=True):
    """The section `settings`: those changed at run time for groups and for all brokers together."""

    holders: tuple[Holder, ...]


class _Restore(Protocol):
    def __call__(self, admin: Admin, content: Any, *, is_dry_run: bool) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _SectionKind:
    version: int
    save: Callable[[Admin], tuple[msgspec.Struct | None, list[str]]]
    """Returns the content, None if there is none, and sentences on what it lacks."""
    restore: _Restore
    """Restores the content, or in a dry run only checks whether that is possible."""


def save_sections(admin: Admin) -> tuple[dict[str, Section], list[str]]:
    """Fetch the cluster's state; return it and sentences on what could not be saved."""
    found: dict[str, Section] = {}
    notes: list[str] = []
    for name, kind in KINDS.items():
        content, said = kind.save(admin)
        notes += said
        if content is not None:
            found[name] = Section(version=kind.version, content=_plain(content))
    return found, notes


def check_sections(
    admin: Admin, sections: Mapping[str, Section], left_out: Iterable[str]
) -> list[str]:
    """Return the names of the sections to restore; raises before anything is changed.

    Raises BackupError for a section that this version does not know, or an unknown name.
    """
    for name in left_out:
        if name not in sections:
            raise BackupError(f"the backup has no section {name} to leave out")
    chosen = [name for name in sections if name not in set(left_out)]
    for name in chosen:
        kind, section = KINDS.get(name), sections[name]
        if kind is None or section.version > kind.version:
            raise BackupError(
                f"the backup holds the section {name} in version {section.version}, which this "
                f"Kafkaesque does not know: use a newer one, or leave it out with --without {name}"
            )
    for name in chosen:
        KINDS[name].restore(admin, sections[name].content, is_dry_run=True)
    return chosen


def restore_sections(admin: Admin, sections: Mapping[str, Section], chosen: Iterable[str]) -> None:
    """Restore sections that `check_sections` returned; repeating it is harmless."""
    for name in chosen:
        KINDS[name].restore(admin, sections[name].content, is_dry_run=False)


def _plain(content: msgspec.Struct) -> Any:
    """Return the content as it will be read back: lists and dictionaries."""
    return msgspec.json.decode(msgspec.json.encode(content))


def _decoded(content: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(content, type=kind)
    except msgspec.ValidationError as error:
        reason = f"a section is not valid: {error}"
        raise DamagedBackup(MANIFEST_NAME, 0, reason) from error


def _save_features(admin: Admin) -> tuple[Levels | None, list[str]]:
    levels = {one.name: one.finalized for one in admin.features.list() if one.finalized}
    return (Levels(levels=levels) if levels else None), []


def _restore_features(admin: Admin, content: Any, *, is_dry_run: bool) -> None:
    known = {one.name: one for one in admin.features.list()}
    wanted = {}
    for name, level in _decoded(content, Levels).levels.items():
        there = known.get(name)
        if there is None or there.possible < level:
            can = "does not know it" if there is None else f"supports {there.possible} at most"
            raise BackupError(
                f"the backup is of a cluster at level {level} of {name}, and the target {can}: "
                f"use newer brokers, or leave this out with --without {FEATURES}"
            )
        if there.finalized < level:
            wanted[name] = level
    if wanted:
        admin.features.finalize(wanted, is_dry_run=is_dry_run)


def _save_settings(admin: Admin) -> tuple[Holders | None, list[str]]:
    places = [(Kind.BROKER, ALL_BROKERS)]
    places += [
        (kind, name)
        for kind in (Kind.GROUP, Kind.CLIENT_METRICS)
        for name in admin.settings.names(kind)
    ]
    holders, notes = [], []
    for kind, name in places:
        changed = admin.settings.changed(kind, name)
        notes += [
            f"setting {one.name} of {subject(kind, name)} is secret and was not saved"
            for one in changed
            if one.value is None
        ]
        settings = {one.name: one.value for one in changed if one.value is not None}
        if settings:
            holders.append(Holder(kind=kind.name, name=name, settings=settings))
    return (Holders(holders=tuple(holders)) if holders else None), notes


def _restore_settings(admin: Admin, content: Any, *, is_dry_run: bool) -> None:
    for one in _decoded(content, Holders).holders:
        if one.kind not in Kind.__members__:
            raise DamagedBackup(MANIFEST_NAME, 0, f"a {one.kind} has no settings")
        admin.settings.alter(Kind[one.kind], one.name, one.settings, is_dry_run=is_dry_run)


KINDS: Mapping[str, _SectionKind] = {
    FEATURES: _SectionKind(version=1, save=_save_features, restore=_restore_features),
    SETTINGS: _SectionKind(version=1, save=_save_settings, restore=_restore_settings),
}
"""In restore order, before the topics: these may need a level."""
