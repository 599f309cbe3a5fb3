"""Restores a backup, into its own cluster or another one.

All files and all target topics are checked before anything is changed. Then, topic by topic: the
topic is created with settings that neither lose nor change records, gets its records, and then its
own settings. Finally the groups get their positions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafkaesque.backup.check import check_topics, load
from kafkaesque.backup.chunk import read_batches
from kafkaesque.backup.errors import BackupError, TopicNotEmpty
from kafkaesque.backup.fit import SEQUENCES, fit, pieces, translate
from kafkaesque.backup.manifest import (
    Backup,
    SavedGroup,
    SavedPartition,
    SavedTopic,
    partition_folder,
)
from kafkaesque.backup.plan import EVERYTHING, matches
from kafkaesque.backup.save import Surroundings
from kafkaesque.backup.sections import check_sections, restore_sections
from kafkaesque.backup.state import OwnTopic, RestoreState, StateFile, default_state_path
from kafkaesque.backup.target import Target, Wishes
from kafkaesque.backup.watch import Watch
from kafkaesque.client.admin import Admin
from kafkaesque.client.errors import Refused
from kafkaesque.client.topics import LATEST, Place
from kafkaesque.errors import UnknownTopic
from kafkaesque.record.view import BatchView
from kafkaesque.types import Buffer, Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class What:
    """What to restore of a backup, and under which names."""

    topics: tuple[str, ...] = EVERYTHING
    groups: tuple[str, ...] = EVERYTHING
    prefix: str = ""
    renames: Mapping[str, str] = field(default_factory=dict)
    wishes: Wishes = field(default_factory=Wishes)
    is_with_cluster: bool = False
    """Whether to restore the state of the whole cluster, too."""
    left_out: tuple[str, ...] = ()
    """Sections that are not restored."""
    state_path: Path | None = None

    def name_of(self, topic: str) -> str:
        """Return the target name of a topic."""
        return self.renames.get(topic, self.prefix + topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore."""

    topics: Mapping[str, SavedTopic]
    """By their names in the target."""
    groups: Sequence[str]
    sections: Sequence[str]
    """The restored parts of the cluster's state."""
    failures: Sequence[str]
    """One sentence for each group that could not be set."""


class Restorer:
    """Restores one backup into one cluster."""

    def __init__(self, admin: Admin, root: Path, around: Surroundings) -> None:
        self._admin = admin
        self._root = root
        self._around = around
        self._target = Target(admin, around.limits, around.sleep)

    def run(self, what: What) -> Restored:
        """Restore, or resume; raises TopicNotEmpty before anything is changed.

        Whatever interrupts this, even a kill, the same call resumes it.
        """
        backup = load(self._root)
        chosen = _choose(backup, what)
        for damage in check_topics(self._root, tuple(chosen.values()), Watch()):
            raise damage
        cluster_id = self._admin.cluster().cluster_id
        file = StateFile(what.state_path or default_state_path(self._root, cluster_id))
        state = file.read(backup.begun_ms, cluster_id)
        if state is not None:
            self._target.forget_gone(state.topics)
        self._target.refuse_foreign(chosen, {} if state is None else state.topics)
        sections = self._check_sections(backup, what)
        if state is None:
            producer = self._admin.new_producer()
            state = RestoreState(
                begun_ms=backup.begun_ms,
                cluster_id=cluster_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
            )
            file.write(state)
        self._around.watch.begins(
            partitions=sum(len(topic.partitions) for topic in chosen.values()),
            total=sum(topic.size for topic in chosen.values()),
        )
        restore_sections(self._admin, backup.sections, sections)
        for name, topic in chosen.items():
            self._topic(name, topic, what, state, file)
        groups, failures = self._groups(backup, chosen, what)
        if not failures:
            file.remove()
        return Restored(topics=chosen, groups=groups, sections=sections, failures=failures)

    def _check_sections(self, backup: Backup, what: What) -> list[str]:
        if what.is_with_cluster:
            return check_sections(self._admin, backup.sections, what.left_out)
        if backup.sections:
            names = ", ".join(backup.sections)
            self._around.watch.note(
                f"the state of the cluster is not restored; --with-cluster restores it: {names}"
            )
        return []

    # --- topics ----------------------------------------------------------------------------------

    def _topic(
        self, name: str, topic: SavedTopic, what: What, state: RestoreState, file: StateFile
    ) -> None:
        watch = self._around.watch
        own = state.topics.get(name)
        if own is None or not own.is_done:
            topic_id = self._target.make(name, topic, what.wishes)
            if own is None or own.topic_id != topic_id:
                own = state.topics[name] = OwnTopic(topic_id=topic_id)
                file.write(state)
            _Writing(self, name, topic, state).run()
            self._target.finish(name, topic, what.wishes)
            own.is_done = True
            file.write(state)
        else:
            watch.moved(amount=topic.size, size=0)
        watch.topic_done(name, records=topic.records, size=topic.size)

    @property
    def admin(self) -> Admin:
        """The target cluster."""
        return self._admin

    @property
    def watch(self) -> Watch:
        """The observer of the progress."""
        return self._around.watch

    def batches(self, topic: SavedTopic, one: SavedPartition) -> Iterator[BatchView]:
        """Yield the saved batches of one partition."""
        folder = partition_folder(self._root, topic, one.partition)
        for chunk in one.chunks:
            for _, view in read_batches(folder / chunk.name, chunk):
                yield view

    # --- groups ----------------------------------------------------------------------------------

    def _groups(
        self, backup: Backup, chosen: Mapping[str, SavedTopic], what: What
    ) -> tuple[list[str], list[str]]:
        groups = [one for one in backup.groups if matches(one.group, what.groups)]
        moved = self._translate(groups, chosen)
        done, failures = [], []
        for one in groups:
            offsets: dict[Place, Offset] = {}
            metadata: dict[Place, str] = {}
            for position in one.positions:
                key = (position.topic, position.partition, position.offset)
                if key in moved:
                    place = (what.name_of(position.topic), position.partition)
                    offsets[place] = moved[key]
                    metadata[place] = position.metadata
            if not offsets:
                continue
            try:
                self._admin.groups.commit(one.group, offsets, metadata)
            except (Refused, UnknownTopic) as error:
                failures.append(f"group {one.group} was not set: {error}")
                self._around.watch.note(failures[-1])
            else:
                done.append(one.group)
        return done, failures

    def _translate(
        self, groups: Sequence[SavedGroup], chosen: Mapping[str, SavedTopic]
    ) -> dict[tuple[str, int, Offset], Offset]:
        """Return the new offset of every group position in the chosen topics."""
        wanted: dict[Place, set[Offset]] = {}
        for group in groups:
            for position in group.positions:
                place = (position.topic, position.partition)
                wanted.setdefault(place, set()).add(position.offset)
        moved: dict[tuple[str, int, Offset], Offset] = {}
        for topic in chosen.values():
            for one in topic.partitions:
                positions = wanted.get((topic.name, one.partition), set())
                if positions:
                    found = translate(self.batches(topic, one), one.start, one.end, positions)
                    for old, new in found.items():
                        moved[topic.name, one.partition, old] = new
        return moved


class _Writing:
    """Writes one topic; the ends of the target partitions say how much is done."""

    def __init__(
        self, restorer: Restorer, name: str, topic: SavedTopic, state: RestoreState
    ) -> None:
        self._restorer = restorer
        self._name = name
        self._topic = topic
        self._producer = state.producer
        self._expected: dict[Place, Offset] = {}

    def run(self) -> None:
        """Write everything that is still missing."""
        admin = self._restorer.admin
        places = [(self._name, one.partition) for one in self._topic.partitions]
        self._expected = admin.topics.offsets(places, LATEST)
        for place, end in self._expected.items():
            if end:
                self._check_tail(place, end)
        sources = (
            ((self._name, one.partition), self._fitted(one)) for one in self._topic.partitions
        )
        admin.pipeline().write(sources, self._taken)

    def _fitted(self, one: SavedPartition) -> Iterator[Buffer]:
        place = (self._name, one.partition)
        there = self._expected[place]
        total = 0
        saved = self._restorer.batches(self._topic, one)
        for view, new_offset, count in pieces(saved, one.start, one.end):
            total = new_offset + count
            if total <= there:
                self._restorer.watch.moved(amount=view.size, size=0)
                continue
            if new_offset < there:
                self._refuse(place)
            yield fit(view, one.start, one.end, self._producer, new_offset)
            self._restorer.watch.moved(amount=view.size, size=view.size)
        if total < there:
            self._refuse(place)
        self._restorer.watch.partition_done(place)

    def _check_tail(self, place: Place, end: Offset) -> None:
        """Raise unless the last batch there is ours, at the expected place."""
        fetched = self._restorer.admin.batches.fetch(*place, end - 1)
        tail = fetched.batches[-1] if fetched.batches else None
        is_ours = (
            tail is not None
            and tail.end_offset == end
            and tail.producer_id == self._producer.producer_id
            and tail.base_sequence == tail.base_offset % SEQUENCES
        )
        if not is_ours:
            self._refuse(place)

    def _taken(self, place: Place, batch: Buffer, offset: Offset | None) -> None:
        expected = self._expected[place]
        if offset is not None and offset != expected:
            self._refuse(place)
        self._expected[place] = expected + BatchView(batch).record_count

    def _refuse(self, place: Place) -> None:
        raise TopicNotEmpty(
            f"partition {place[1]} of topic {place[0]} has records not written by this restore: "
            "another producer writes to it"
        )


def _choose(backup: Backup, what: What) -> dict[str, SavedTopic]:
    """Return the topics by their new names; raises for invalid patterns or names."""
    names = [topic.name for topic in backup.topics]
    for pattern in (*what.topics, *what.renames):
        if pattern not in EVERYTHING and not any(matches(name, [pattern]) for name in names):
            raise UnknownTopic(f"there is no topic {pattern} in the backup")
    chosen: dict[str, SavedTopic] = {}
    for topic in backup.topics:
        if matches(topic.name, what.topics):
            name = what.name_of(topic.name)
            if name in chosen:
                raise BackupError(f"two topics would have the name {name}")
            chosen[name] = topic
    return chosen
