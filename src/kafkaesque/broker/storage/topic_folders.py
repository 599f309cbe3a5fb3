"""The folders of topics and partitions on this node's disk, and their removal.

    topic deleted    <topic>/            → <topic>.deleted/               → removed
    partition moved  <topic>/<partition> → <topic>/<partition>.1.deleted/ → removed

A folder is removed only for what is committed in the catalog: a tombstone, or a record that no
longer names this node as a holder of the partition. A crash may come between any two steps: the
catalog, the journal, or the folder's new name shows how to continue. Folders unknown to all three
are left alone.
"""

import re
from collections.abc import Callable

from kafkaesque.broker.storage.removal import DELETED_SUFFIX, Removal
from kafkaesque.broker.storage.store import Store
from kafkaesque.clock import Clock
from kafkaesque.events import FoldersOfNoTopic, RemovalFailed
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.group_names import folder_of
from kafkaesque.types import GroupId

_FOLDER = re.compile(r".+\.([0-9a-f]{32})")
_FOLDERS_TOLD_MAX = 20


class TopicFolders:
    """One node's topic folders on disk, apart from open logs."""

    def __init__(self, store: Store, clock: Clock, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._removal = Removal(store.disk, clock, store.events)
        self._leaving: set[GroupId] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no removal is pending."""
        return self._removal.is_idle and not self._leaving

    def tick(self) -> None:
        """Continue removing, a little at a time."""
        self._removal.tick()

    def is_leaving(self, group: GroupId) -> bool:
        """Whether a partition's folder is being removed, so that no new log may start there."""
        return group in self._leaving

    def bury(self, topic_id: bytes, folder: str) -> None:
        """Remove a topic's folder after the next round: until then a sync may run in it.

        The catalog remembers the topic until the folder's name marks it for removal. Otherwise a
        snapshot and a restart in between would leave a folder that belongs to no topic.
        """

        def named() -> None:
            self._catalog.buried.discard(topic_id)

        self._store.flusher.after_next_round(lambda: self._removal.take(folder, named))

    def leave(self, group: GroupId, left: Callable[[], None]) -> None:
        """Give up this node's replica of a group, whose log is no longer in use, and its folder.

        `left` is called when the group may start here again.
        """
        self._store.leave(group)
        self._leaving.add(group)

        def noted() -> None:
            self._leaving.discard(group)
            self._set_aside(group)
            left()

        self._store.flusher.after_next_round(noted)

    def has_remains(self, group: GroupId) -> bool:
        """Whether anything is left here of a partition that this node does not hold."""
        if group not in self._store.journal.groups:
            return False
        return not self._store.has_left(group) or bool(self._store.disk.list(group))

    def tidy(self) -> None:
        """Resume deletions that a crash interrupted, and report unknown folders."""
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
            named = tuple(strangers[:_FOLDERS_TOLD_MAX])
            store.events.tell(FoldersOfNoTopic(count=len(strangers), folders=named))

    def _set_aside(self, group: GroupId) -> None:
        """Rename a partition's folder for removal, if it exists."""
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
            # The journal says that nothing in it counts, and the next start retries.
            self._store.events.tell(RemovalFailed(folder=group, reason=str(error)))
            return
        self._removal.take(named)
