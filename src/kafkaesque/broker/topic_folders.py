"""The folders of topics and partitions on this node's disk, and how they go.

    topic deleted    <topic>/            → <topic>.deleted/               → removed
    partition moved  <topic>/<partition> → <topic>/<partition>.1.deleted/ → removed

Only what is committed in the catalog brings a folder to its end: a tombstone, or a record that no
longer names this node among the holders of a partition. A crash may come between any two steps: the
catalog, the journal, or the folder's new name says how to go on. What none of them speaks of is
left alone.
"""

import logging
import re
from collections.abc import Callable

from kafkaesque.broker.removal import DELETED_SUFFIX, Removal
from kafkaesque.broker.store import Store
from kafkaesque.clock import Clock
from kafkaesque.machines.catalog import Catalog, Topic
from kafkaesque.types import GroupId

log = logging.getLogger(__name__)

_NAME_CHARS_IN_PATH = 180
_FOLDER = re.compile(r".+\.([0-9a-f]{32})")
_FOLDERS_TOLD_MAX = 20


class TopicFolders:
    """What one node has on disk of topics, beyond the logs that are open."""

    def __init__(self, store: Store, clock: Clock, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._removal = Removal(store.disk, clock)
        self._leaving: set[GroupId] = set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be removed."""
        return self._removal.is_idle and not self._leaving

    def tick(self) -> None:
        """Remove a little."""
        self._removal.tick()

    def is_leaving(self, group: GroupId) -> bool:
        """Whether a partition's folder is on its way out, so that no new log may begin there."""
        return group in self._leaving

    def bury(self, topic_id: bytes, folder: str) -> None:
        """Remove a topic's folder after the next round: until then a sync may run in it.

        The catalog remembers the topic until the folder's name says that it is to go. Else a
        snapshot and a restart in between would leave a folder that belongs to nobody.
        """

        def named() -> None:
            self._catalog.buried.discard(topic_id)

        self._store.flusher.after_next_round(lambda: self._removal.take(folder, named))
        self._store.flusher.kick()

    def leave(self, group: GroupId, left: Callable[[], None]) -> None:
        """Give up this node's replica of a group, whose log nobody uses any more, and its folder.

        `left` is told when the group may begin here anew.
        """
        self._store.leave(group)
        self._leaving.add(group)

        def noted() -> None:
            self._leaving.discard(group)
            self._set_aside(group)
            left()

        self._store.flusher.after_next_round(noted)
        self._store.flusher.kick()

    def has_remains(self, group: GroupId) -> bool:
        """Whether there is anything here of a partition that is not held by this node."""
        if group not in self._store.journal.groups:
            return False
        return not self._store.has_left(group) or bool(self._store.disk.list(group))

    def tidy(self) -> None:
        """Go on with the deletions that a crash interrupted, and tell what else lies about."""
        catalog, store = self._catalog, self._store
        self._removal.take_named()
        known = {folder_of(topic) for topic in catalog.topics.values()}
        unfinished: set[bytes] = set()
        strangers: list[str] = []
        for name in store.disk.list(""):
            found = _FOLDER.fullmatch(name)
            if found is None or name in known:
                continue
            topic_id = bytes.fromhex(found[1])
            if topic_id not in catalog.buried:
                strangers.append(name)
                continue
            unfinished.add(topic_id)
            self.bury(topic_id, name)
        for group in list(store.journal.groups):
            found = _FOLDER.fullmatch(group.partition("/")[0])
            if found is not None and bytes.fromhex(found[1]) in catalog.buried:
                store.forget(group)
        catalog.buried &= unfinished
        if strangers:
            log.warning(
                "folders_of_no_topic count=%d folders=%s: left alone; remove them by hand if "
                "nobody needs them",
                len(strangers),
                ",".join(strangers[:_FOLDERS_TOLD_MAX]),
            )

    def _set_aside(self, group: GroupId) -> None:
        """Give a partition's folder a name that lets it be removed, if it is there."""
        disk = self._store.disk
        folder, _, partition = group.partition("/")
        names = set(disk.list(folder))
        if partition not in names:
            return
        serial = 1
        while f"{partition}.{serial}{DELETED_SUFFIX}" in names:
            serial += 1
        named = f"{group}.{serial}{DELETED_SUFFIX}"
        try:
            disk.rename_folder(group, named)
        except OSError as error:
            # The journal says that nothing in it counts, and the next start tries again.
            log.warning("removal_failed folder=%s reason=%s", group, error)
            return
        self._removal.take(named)


def folder_of(topic: Topic) -> str:
    """Return a topic's folder; its id keeps namesakes apart."""
    return f"{topic.name[:_NAME_CHARS_IN_PATH]}.{topic.topic_id.hex()}"


def is_folder_of(folder: str, name: str) -> bool:
    """Whether a folder is that of a topic of this name, or of a namesake that was deleted."""
    return folder.rpartition(".")[0] == name[:_NAME_CHARS_IN_PATH]


def group_of(topic: Topic, index: int) -> GroupId:
    """Return the group of a partition, which is also its folder."""
    return f"{folder_of(topic)}/{index}"
