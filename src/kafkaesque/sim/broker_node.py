"""One simulated machine with a whole broker on it, of the production class.

Like `sim/node.py`, but it runs a `Broker`, which opens and closes its replicas on its own as the
catalog changes.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.membership import Membership
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.storage.store import Store
from kafkaesque.config import BrokerConfig, LogConfig
from kafkaesque.errors import LogError
from kafkaesque.server.edge.event_log import EventLog
from kafkaesque.sim.disk import SimDisk
from kafkaesque.sim.inode import CrashPolicy
from kafkaesque.sim.node import EVERY_LINE
from kafkaesque.sim.schedule import NodeClock
from kafkaesque.types import NodeId


class BrokerNode:
    """A machine of the cluster; its broker comes and goes, its disk stays."""

    def __init__(
        self,
        node: NodeId,
        disk: SimDisk,
        clock: NodeClock,
        chance: random.Random,
        configs: tuple[LogConfig, BrokerConfig],
        membership: Membership,
        opened: Callable[[Replica], None],
    ) -> None:
        self.node = node
        self.disk = disk
        self.clock = clock
        self.events = EventLog(clock, EVERY_LINE)
        self.broker: Broker | None = None
        self.store: Store
        """Its data folder, since it was last started."""
        self.life = 0
        """Counts the starts: callbacks for an earlier run must not reach this one."""
        self.is_ready = False
        self.paused_until = 0
        self.has_failed = False
        self.is_late = False
        """Whether it must not be started yet."""
        self._chance = chance
        self._log_config, self._config = configs
        self._membership = membership
        self._opened = opened
        self.soon: Callable[[Callable[[], None]], None]
        """Runs a callback on this machine in a moment, unless it is down then."""

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""
        return self.broker is not None

    def start(self) -> None:
        """Start the process, as after any stop."""
        assert self.broker is None
        self.life += 1
        self.is_ready = self.has_failed = False
        self.paused_until = 0
        store = Store.open(
            self.disk, self._log_config, self.clock, self.node, self._on_failed, self.events
        )
        self.store = store
        store.slices.on_wanted = partial(self.soon, store.slices.run)
        broker = Broker(
            self.node,
            store,
            self.clock,
            self._chance,
            self._config,
            self._on_failed,
            self._membership,
        )
        broker.replicas.on_opened = self._opened
        self.broker = broker
        broker.start(self._on_ready)

    def stop_cleanly(self) -> None:
        """Stop the process the way an operator does."""
        assert self.broker is not None
        with suppress(LogError):  # if the disk fails now, the result is as after a kill
            self.broker.stop()
        self.kill()

    def kill(self) -> None:
        """Kill the process; the machine keeps running."""
        self._go_down()
        self.disk.kill()

    def lose_power(self) -> None:
        """Cut the machine's power."""
        self._go_down()
        self.disk.crash(CrashPolicy.TORN)

    def after_event(self) -> None:
        """Stop the process if its disk has failed."""
        if self.has_failed and self.broker is not None:
            self.kill()

    def _on_ready(self) -> None:
        self.is_ready = True

    def _on_failed(self, _: LogError) -> None:
        self.has_failed = True

    def _go_down(self) -> None:
        if self.broker is not None:
            broker, self.broker = self.broker, None
            broker.replicas.abandon()
