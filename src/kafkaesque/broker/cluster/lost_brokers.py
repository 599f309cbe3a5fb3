"""Drains the brokers that an operator gave up when this one was forced to go on.

    named by `cluster recover`, durably --the broker has started--> drained --> forgotten

The catalog cannot distinguish a lost broker from an unreachable one: without this the cluster would
wait for a broker that must never come back with its old data.
"""

from collections.abc import Callable, Iterable

import msgspec

from kafkaesque.callbacks import ignore
from kafkaesque.errors import LogError
from kafkaesque.events import Events, LostBrokersDrained, LostBrokersKept, LostBrokersUnreadable
from kafkaesque.log.checked_file import CheckedFile
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_commands import AskCatalog, DrainBroker
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.types import NodeId

NAME = "lost-brokers"
TRY_TICKS = 20
"""How long to wait before repeating a drain that the catalog does not show."""

_FILE = CheckedFile(name=NAME, magic=b"KQLB", format=1)
_PATH = f"{CATALOG_GROUP}/{NAME}"


def load_lost(disk: Disk, events: Events) -> frozenset[NodeId]:
    """Return the brokers that were given up; an unreadable file names none, and is reported."""
    data = _FILE.load(disk, CATALOG_GROUP)
    if data is None:
        return frozenset()
    state = _FILE.state(_PATH, data)
    try:
        return frozenset(msgspec.msgpack.decode(state or b"", type=list[NodeId]))
    except msgspec.MsgspecError:
        events.tell(LostBrokersUnreadable(path=_PATH))
        return frozenset()


def save_lost(disk: Disk, nodes: Iterable[NodeId], events: Events) -> None:
    """Add brokers that are given up to the known ones; durable on return."""
    known = sorted({*load_lost(disk, events), *nodes})
    _FILE.save(disk, CATALOG_GROUP, msgspec.msgpack.encode(known))


class LostBrokers:
    """Has the given-up brokers drained; `tick` it once this broker knows the catalog."""

    def __init__(
        self,
        disk: Disk,
        catalog: Callable[[], Catalog],
        ask: AskCatalog,
        events: Events,
    ) -> None:
        self._disk = disk
        self._catalog = catalog
        self._ask = ask
        self._events = events
        self._waiting: frozenset[NodeId] = frozenset()
        self._ticks = 0

    def start(self) -> None:
        """Load the brokers that were given up; raises LogError."""
        self._waiting = load_lost(self._disk, self._events)

    def tick(self) -> None:
        """Request the drains that the catalog does not show yet; forget them all when done."""
        if not self._waiting:
            return
        if self._ticks % TRY_TICKS == 0:
            self._go_on()
        self._ticks += 1

    def _go_on(self) -> None:
        known = self._catalog().brokers
        left = [node for node in sorted(self._waiting) if node in known]
        left = [node for node in left if not known[node].is_draining]
        if not left:
            self._forget()
            return
        for node in left:
            self._ask(DrainBroker(node=node, is_draining=True), ignore)  # the catalog shows it

    def _forget(self) -> None:
        self._events.tell(LostBrokersDrained(nodes=tuple(sorted(self._waiting))))
        self._waiting = frozenset()
        try:
            with disk_errors(_PATH):
                self._disk.remove(_PATH)
                self._disk.sync_now([], [CATALOG_GROUP])
        except LogError as error:  # then the next run finds nothing to do
            self._events.tell(LostBrokersKept(reason=str(error)))
