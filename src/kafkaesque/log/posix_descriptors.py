"""The open files of a disk, within a budget of descriptors.

A partition has several files per segment and a broker thousands of partitions, more than a process
may hold open. So the descriptor unused for longest is closed when it is safe to, and the file is
reopened at its next use.

Linux reports a write-back error once, and only to descriptors that were open when it happened. So a
file with unsynced writes keeps its descriptor: closing it could hide their loss.
"""

import os
import resource
from collections import OrderedDict

OPEN_FILES_MIN = 64
"""The smallest budget, however low the process's own limit."""

OPEN_FILES_SHARE = 4
"""One descriptor in this many is for files; connections need the others."""

OPEN_FILES_UNLIMITED = 4096
"""The budget of a process without a limit; the kernel's tables are finite."""


class Node:
    """One file of the file system while it is open here, shared by all its handles."""

    __slots__ = (
        "descriptor",
        "failed",
        "handles",
        "location",
        "on_root_device",
        "path",
        "removed",
        "synced",
        "syncing",
        "written",
    )

    def __init__(self, path: str, location: str) -> None:
        self.path = path
        self.location = location
        self.descriptor = -1
        self.on_root_device = True
        self.handles = 0
        self.written = 0  # changes made through us
        self.synced = 0  # how many of them are durable
        self.syncing = 0  # syncs under way, whose threads use the descriptor
        self.failed = False  # a sync failed, so nothing written can be trusted
        self.removed = False  # has no name any more: a closed descriptor could not be reopened

    def may_close(self) -> bool:
        """Whether the descriptor can be closed now and reopened later without loss."""
        return self.written == self.synced and self.syncing == 0 and not self.removed


class Descriptors:
    """Opens and closes the descriptors of nodes, at most `budget` of them.

    Nodes that must keep theirs may exceed it; without a budget it is a share of the process's
    limit.
    """

    def __init__(self, root_descriptor: int, budget: int | None) -> None:
        self._root_device = os.fstat(root_descriptor).st_dev
        self._budget = _budget_of_process() if budget is None else budget
        self._closed = False
        self._open: dict[Node, None] = {}
        # Nodes that may be closed at any time, the longest unused first.
        self._idle: OrderedDict[Node, None] = OrderedDict()

    def open(self, node: Node, flags: int = os.O_RDWR) -> None:
        """Open the node's file, closing idle ones if the budget is used up."""
        assert not self._closed, "the disk is closed"
        while len(self._open) >= self._budget and self._idle:
            self.close(next(iter(self._idle)))
        node.descriptor = os.open(node.location, flags | os.O_CLOEXEC, 0o644)
        node.on_root_device = os.fstat(node.descriptor).st_dev == self._root_device
        self._open[node] = None
        self.allow_closing(node)

    def of(self, node: Node) -> int:
        """Return the node's descriptor, reopened if it was closed; raises OSError."""
        if node.descriptor < 0:
            self.open(node)
        elif node in self._idle:
            self._idle.move_to_end(node)
        return node.descriptor

    def hold(self, node: Node) -> None:
        """Keep the descriptor open until `allow_closing`."""
        self._idle.pop(node, None)

    def allow_closing(self, node: Node) -> None:
        """Let the descriptor be closed when others need room, unless that would lose something."""
        if node.descriptor >= 0 and node.may_close():
            self._idle[node] = None

    def close(self, node: Node) -> None:
        """Close the node's descriptor, if it has one."""
        if node.descriptor >= 0:
            os.close(node.descriptor)
            node.descriptor = -1
            del self._open[node]
            self._idle.pop(node, None)

    def close_all(self) -> None:
        """Close every descriptor, for good."""
        self._closed = True
        for node in tuple(self._open):
            self.close(node)


def _budget_of_process() -> int:
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit == resource.RLIM_INFINITY:
        return OPEN_FILES_UNLIMITED
    return max(OPEN_FILES_MIN, soft_limit // OPEN_FILES_SHARE)
