"""What a backup will hold: decided once, before the first record is fetched.

Partition ends are fetched first and the groups' positions after them, so positions are at least as
new as the records. Newer ones are set back to the end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kafkaesque.backup.manifest import (
    Backup,
    SavedGroup,
    SavedPartition,
    SavedPosition,
    SavedTopic,
)
from kafkaesque.backup.sections import save_sections
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import EARLIEST, LATEST, Place, TopicInfo
from kafkaesque.errors import UnknownTopic
from kafkaesque.types import Offset

EVERYTHING = ("*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The topics and groups to save, by patterns with `*`, `?` and `[…]`."""

    topics: tuple[str, ...] = EVERYTHING
    groups: tuple[str, ...] = EVERYTHING


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns, case-sensitively."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def make_plan(admin: Admin, wanted: Wanted, now_ms: int) -> Backup:
    """Plan a backup from the cluster's state; raises UnknownTopic if a pattern matches no topic.

    Works while brokers are away, but raises RefusedForNow if groups could be missing.
    """
    cluster = admin.cluster()
    infos = _topics(admin, wanted.topics)
    places = [place for info in infos for place in info.places]
    starts = admin.topics.offsets(places, EARLIEST)
    ends = admin.topics.offsets(places, LATEST, is_committed=True)
    groups, notes = _groups(admin, wanted.groups, starts, ends)
    sections, more_notes = save_sections(admin)
    return Backup(
        cluster_id=cluster.cluster_id,
        begun_ms=now_ms,
        wanted_topics=wanted.topics,
        wanted_groups=wanted.groups,
        topics=tuple(
            _topic(admin, number, info, starts, ends) for number, info in enumerate(infos)
        ),
        groups=groups,
        sections=sections,
        notes=(*notes, *more_notes),
    )


def _topics(admin: Admin, patterns: Sequence[str]) -> list[TopicInfo]:
    ours = [info for info in admin.topics.list() if not info.is_internal]
    for pattern in patterns:
        if pattern not in EVERYTHING and not any(matches(one.name, [pattern]) for one in ours):
            raise UnknownTopic(f"there is no topic {pattern}")
    return [info for info in ours if matches(info.name, patterns)]


def _topic(
    admin: Admin,
    number: int,
    info: TopicInfo,
    starts: dict[Place, Offset],
    ends: dict[Place, Offset],
) -> SavedTopic:
    settings = {
        one.name: one.value
        for one in admin.topics.settings(info.name)
        if not one.is_default and not one.is_sensitive and one.value is not None
    }
    return SavedTopic(
        name=info.name,
        number=number,
        topic_id=info.topic_id.hex(),
        replicas=max((len(one.replicas) for one in info.partitions), default=1),
        settings=settings,
        partitions=tuple(
            # An open transaction that started before the kept records leaves nothing to save.
            SavedPartition(
                partition=place[1], start=starts[place], end=max(starts[place], ends[place])
            )
            for place in info.places
        ),
    )


def _groups(
    admin: Admin,
    patterns: Sequence[str],
    starts: dict[Place, Offset],
    ends: dict[Place, Offset],
) -> tuple[tuple[SavedGroup, ...], list[str]]:
    saved = []
    notes = []
    for listing in admin.groups.list_all():
        if not matches(listing.group, patterns):
            continue
        positions = []
        for place, one in sorted(admin.groups.committed(listing.group).items()):
            if place not in ends:
                continue
            end = max(starts[place], ends[place])
            if one.offset > end:
                notes.append(
                    f"group {listing.group} was at offset {one.offset} of partition {place[1]} "
                    f"of topic {place[0]}, which is saved up to {end}: set back to that"
                )
            positions.append(
                SavedPosition(
                    topic=place[0],
                    partition=place[1],
                    offset=min(one.offset, end),
                    metadata=one.metadata,
                )
            )
        if positions:
            saved.append(SavedGroup(group=listing.group, positions=tuple(positions)))
    return tuple(saved), notes
