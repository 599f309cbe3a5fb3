"""State shared by all connections of one broker."""

from collections.abc import Callable, Mapping
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.problems import problems
from kafkaesque.clock import Clock
from kafkaesque.net.frame_reader import SLAB_BYTES
from kafkaesque.net.link import LinkCounters
from kafkaesque.server.edge.budget import Budget
from kafkaesque.server.edge.controllers import Controllers
from kafkaesque.server.edge.counters import Counters
from kafkaesque.server.edge.doorkeeper import Doorkeeper
from kafkaesque.server.edge.problem_watch import Watch
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.server.requests.session import Forward, Session
from kafkaesque.server.requests.stop_signal import Stopping
from kafkaesque.server.requests.unsent_bytes import Untaken
from kafkaesque.server_config import LimitsConfig
from kafkaesque.types import NodeId


class Edge:
    """The limits, the counters, the doorkeeper and the receive buffer."""

    def __init__(
        self,
        broker: Broker,
        limits: LimitsConfig,
        clock: Clock,
        advertised: tuple[str, int] | None,
        turn: Turn,
    ) -> None:
        self.broker = broker
        self.limits = broker.live.keep_limits(limits, self._configure)
        self.counters = Counters()
        self.doorkeeper = Doorkeeper(self.limits, clock, self.counters, broker.events)
        self.controllers = Controllers(broker)
        self.budget = Budget(limits.inflight_bytes_max)
        self.untaken = Untaken(limits.untaken_bytes_max)
        self.slab = memoryview(bytearray(SLAB_BYTES))
        self.stopping = Stopping()
        self.turn = turn
        self.forward: Forward | None = None
        """Forwards requests to other brokers."""
        self.event_counts: Mapping[str, int] = {}
        """Count of each event, by its name."""
        self.links: Mapping[NodeId, LinkCounters] = {}
        """Traffic with each other broker."""
        self.watch = Watch(partial(problems, broker), broker.events, lambda: self.event_counts)
        """The problems of this broker."""
        self._advertised = advertised
        self.is_open = False
        """Whether clients are served: a broker that has just started must first catch up."""
        self._waiting: dict[Callable[[], None], None] = {}
        self._sessions = 0

    def _configure(self, limits: LimitsConfig) -> None:
        self.limits = limits
        self.doorkeeper.configure(limits)

    def session(
        self,
        sockname: tuple[object, ...],
        peername: tuple[object, ...] | None,
        dismiss: Callable[[], None],
        controller_told: Callable[[], None],
    ) -> Session:
        """Return a session for a client's address and the local address it connected to."""
        host, port = self._advertised or (str(sockname[0]), int(str(sockname[1])))
        self._sessions += 1
        return Session(
            connection=self._sessions,
            broker=self.broker,
            host=host,
            port=port,
            client_host=str(peername[0]) if peername else "",
            stopping=self.stopping,
            untaken=self.untaken,
            forward=self.forward,
            dismiss=dismiss,
            controller_told=controller_told,
        )

    def open(self) -> None:
        """Start to serve clients, first those that connected too early."""
        self.is_open = True
        waiting, self._waiting = self._waiting, {}
        for go_on in waiting:
            go_on()

    def when_open(self, go_on: Callable[[], None]) -> None:
        """Call back once clients are served."""
        self._waiting[go_on] = None

    def never_mind(self, go_on: Callable[[], None]) -> None:
        """Cancel the callback of a client that disconnected while it waited."""
        self._waiting.pop(go_on, None)

    @property
    def waiting(self) -> int:
        """How many clients connected too early and still wait."""
        return len(self._waiting)

    def sweep(self) -> None:
        """Check waiting and overdue connections; to be called about once a second."""
        self.controllers.look()
        self.doorkeeper.sweep()
        self.budget.wake()

    def finish(self) -> None:
        """End long polls, and close each client's connection after its last response."""
        self.stopping.begin()
        for guest in self.doorkeeper.clients:
            guest.finish()

    def abort(self) -> None:
        """Close every client connection; links to other brokers stay."""
        for guest in self.doorkeeper.clients:
            guest.abort()
