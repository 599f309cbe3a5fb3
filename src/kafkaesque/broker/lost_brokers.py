"""The brokers that a person gave up when this one was forced to go on: they are drained.

    named by `cluster recover`, durably --the broker has started--> drained --> forgotten

The catalog cannot tell a broker that is lost from one that is away: without this the others would
wait for one that must never come back with its old data.
"""

import logging
from collections.abc import Callable, Iterable

import msgspec

from kafkaesque.broker.doubts import CATALOG_GROUP
from kafkaesque.broker.peers import ReplyTo
from kafkaesque.errors import KafkaesqueError, LogError
from kafkaesque.log.checked_file import CheckedFile
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.machines.catalog import Catalog
from kafkaesque.machines.catalog_commands import Command, DrainBroker
from kafkaesque.types import NodeId

log = logging.getLogger(__name__)

NAME = "lost-brokers"
TRY_TICKS = 20
"""How long to wait before a drain is asked for again that the catalog does not show."""

_FILE = CheckedFile(name=NAME, magic=b"KQLB", format=1)
_PATH = f"{CATALOG_GROUP}/{NAME}"


def load_lost(disk: Disk) -> frozenset[NodeId]:
    """Return who was given up; a file that cannot be read names nobody, and is logged."""
    data = _FILE.load(disk, CATALOG_GROUP)
    if data is None:
        return frozenset()
    state = _FILE.state(_PATH, data)
    try:
        return frozenset(msgspec.msgpack.decode(state or b"", type=list[NodeId]))
    except msgspec.MsgspecError:
        log.warning("lost_brokers_unreadable path=%s: drain them by hand", _PATH)
        return frozenset()


def save_lost(disk: Disk, nodes: Iterable[NodeId]) -> None:
    """Name those who are given up, beside those who were before; durable on return."""
    known = sorted({*load_lost(disk), *nodes})
    _FILE.save(disk, CATALOG_GROUP, msgspec.msgpack.encode(known))


class LostBrokers:
    """Has those drained who were given up; `tick` it once this broker knows the catalog."""

    def __init__(
        self, disk: Disk, catalog: Callable[[], Catalog], ask: Callable[[Command, ReplyTo], None]
    ) -> None:
        self._disk = disk
        self._catalog = catalog
        self._ask = ask
        self._waiting: frozenset[NodeId] = frozenset()
        self._ticks = 0

    def start(self) -> None:
        """See who was given up; raises LogError."""
        self._waiting = load_lost(self._disk)

    def tick(self) -> None:
        """Ask for what the catalog does not show yet; forget it all when nothing is left."""
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
            try:
                self._ask(DrainBroker(node=node, is_draining=True), _ignore)
            except KafkaesqueError:
                return  # nobody leads the catalog yet

    def _forget(self) -> None:
        named = ",".join(map(str, sorted(self._waiting)))
        log.info("lost_brokers_drained nodes=%s", named)
        self._waiting = frozenset()
        try:
            with disk_errors(_PATH):
                self._disk.remove(_PATH)
                self._disk.sync_now([], [CATALOG_GROUP])
        except LogError as error:  # then the next run finds that nothing is to be done
            log.warning("lost_brokers_kept reason=%s", error)


def _ignore(*_: object) -> None:
    """The catalog will show it."""
