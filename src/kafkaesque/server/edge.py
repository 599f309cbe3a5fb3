"""What all connections of one broker share."""

from collections.abc import Callable, Mapping
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.problems import problems
from kafkaesque.clock import Clock
from kafkaesque.config import LimitsConfig
from kafkaesque.net.link import LinkCounters
from kafkaesque.net.receiving import SLAB_BYTES
from kafkaesque.server.budget import Budget
from kafkaesque.server.controllers import Controllers
from kafkaesque.server.counters import Counters
from kafkaesque.server.doorkeeper import Doorkeeper
from kafkaesque.server.session import Forward, Session
from kafkaesque.server.stopping import Stopping
from kafkaesque.server.turn import Turn
from kafkaesque.server.untaken import Untaken
from kafkaesque.server.watch import Watch
from kafkaesque.types import NodeId


class Edge:
    """The limits, the counters, the doorkeeper and the slab that bytes are received into."""

    def __init__(
        self,
        broker: Broker,
        limits: LimitsConfig,
        clock: Clock,
        advertised: tuple[str, int] | None = None,
        turn: Turn | None = None,
    ) -> None:
        self.broker = broker
        self.limits = broker.live.keep_limits(limits, self._configure)
        self.counters = Counters()
        self.doorkeeper = Doorkeeper(self.limits, clock, self.counters)
        self.controllers = Controllers(broker)
        self.budget = Budget(limits.inflight_bytes_max)
        self.untaken = Untaken(limits.untaken_bytes_max)
        self.slab = memoryview(bytearray(SLAB_BYTES))
        self.stopping = Stopping()
        self.turn = turn or Turn()
        self.forward: Forward | None = None
        """How requests are handed on to other brokers."""
        self.links: Mapping[NodeId, LinkCounters] = {}
        """What went to other brokers and came from them."""
        self.watch = Watch(partial(problems, broker))
        """What is wrong with this broker."""
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
        """Return a session for a client that came from one address by another of ours."""
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
        """Serve clients from now on, those first who came too early."""
        self.is_open = True
        waiting, self._waiting = self._waiting, {}
        for go_on in waiting:
            go_on()

    def when_open(self, go_on: Callable[[], None]) -> None:
        """Call back when clients are served."""
        self._waiting[go_on] = None

    def never_mind(self, go_on: Callable[[], None]) -> None:
        """Do not call back: those who hang up while they wait are not remembered."""
        self._waiting.pop(go_on, None)

    @property
    def waiting(self) -> int:
        """How many clients came too early and still wait."""
        return len(self._waiting)

    def sweep(self) -> None:
        """Look after those who wait or stay too long; to be called about once a second."""
        self.controllers.look()
        self.doorkeeper.sweep()
        self.budget.wake()

    def finish(self) -> None:
        """Answer those who wait for more, and let every client's connection end after its last."""
        self.stopping.begin()
        for guest in self.doorkeeper.clients:
            guest.finish()

    def abort(self) -> None:
        """Hang up on every client; other brokers are left to the links."""
        for guest in self.doorkeeper.clients:
            guest.abort()
