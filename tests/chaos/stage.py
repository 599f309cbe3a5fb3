"""One run: brokers, machines, clients and faults; and the resulting row of the table."""

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tests.chaos.answers import LossyAnswers
from tests.chaos.brokers import BrokerProcess, Place, kill_all
from tests.chaos.checker import Verdict, check
from tests.chaos.clocks import WallClock
from tests.chaos.disks import PoweredDisk, SmallDisk
from tests.chaos.faults import missing
from tests.chaos.history import Accept, Op, Outcome, Poll, Send
from tests.chaos.job import QUEUE, TOPIC, TRANSACTIONS, now
from tests.chaos.network import Network
from tests.chaos.proxies import Proxies
from tests.chaos.ways import Ways
from tests.chaos.workload import PARTITIONS, SHARER, TRANSACTOR, USUAL, Workload
from tools.repository import ROOT

PROGRESS_SECONDS_MAX = 60.0
"""A partition that accepts no record for this long after everything is healed is stuck."""
MOVE_SECONDS_MAX = 90.0
"""Moves of the few records of a run finish long before that, even when brokers die meanwhile."""
DISK_MIB = 64
SECRET = "secret"
_LOOK_SECONDS = 0.1
_ASK_SECONDS_MAX = 60


D = TypeVar("D", bound=PoweredDisk | SmallDisk)


class Stuck(AssertionError):
    """Everything is healed, and records still do not go through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The brokers, disks and clients of a scenario."""

    brokers: int = 1
    has_network: bool = False
    answers_lost_min: int = 0
    """How many answers to transactional writes must get lost; not combined with a network."""
    disk: type[PoweredDisk] | type[SmallDisk] | None = None
    has_clocks: bool = False
    """Whether each broker has a separate wall clock, which can jump."""
    roles: tuple[str, ...] = USUAL
    topic: tuple[str, ...] = ()
    """Settings of the topic, as `name=value`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Settings of the brokers."""
    mutant: str = ""
    """A bug that is planted in every broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result of a run."""

    faults: tuple[str, ...]
    lost_answers: int
    """To Produce requests of transactions: the broker answered, and the answer was lost."""
    verdict: Verdict
    unavailable_ms: int
    seconds: float


class Stage:
    """Everything that a scenario can break; `with` sets it up and cleans it up."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        self._setting = setting
        self._folder = folder
        self._stack = ExitStack()
        self._ways: Ways | None = None
        self._faults: list[str] = []
        self._begun = 0
        self._made = 0
        self.clocks: dict[int, WallClock] = {}
        self.disks: list[PoweredDisk | SmallDisk] = []
        self.brokers: dict[int, BrokerProcess] = {}
        self.workload: Workload

    def __enter__(self) -> "Stage":
        try:
            self._set_up()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _set_up(self) -> None:
        setting = self._setting
        (self._folder / SECRET).write_text("known to the brokers alone")
        if setting.has_network:
            kind = Proxies if missing("ip") else Network
            self._ways = kind(setting.brokers)
            self._stack.enter_context(self._ways)
        elif setting.answers_lost_min:
            self._ways = self._stack.enter_context(LossyAnswers(setting.brokers))
        for _ in range(setting.brokers):
            self.add()
        self.workload = Workload(self._folder, self.bootstrap, self._prefix)
        self._stack.callback(self.workload.kill)
        shape = (str(PARTITIONS), str(min(3, setting.brokers)))
        self._ask("create", TOPIC, *shape, *setting.topic)
        if TRANSACTOR in setting.roles:
            self._ask("create", TRANSACTIONS, *shape)
        if SHARER in setting.roles:
            self._ask("create", QUEUE, *shape)
            self._ask("share")
        self._begun = now()
        self.workload.start(setting.roles)
        self.wait_for_progress(3 * PROGRESS_SECONDS_MAX)

    def add(self) -> int:
        """Start one more broker, which joins the others; return its number."""
        self._made += 1
        node = self._made
        data = self._folder / f"data{node}"
        if self._setting.disk is not None:
            disk = self._setting.disk(data, DISK_MIB)
            self._stack.enter_context(disk)
            self.disks.append(disk)
        self.brokers[node] = self._broker(node, data)
        self._stack.callback(self._end, self.brokers[node])
        self.brokers[node].start()
        if self._ways is not None:
            self._ways.started(node, self.brokers[node])
        return node

    def _broker(self, node: int, data: Path) -> BrokerProcess:
        environment = dict(self._setting.environment)
        if self._setting.has_clocks:
            self.clocks[node] = WallClock(self._folder, f"broker{node}")
            environment |= self.clocks[node].environment
        place = Place(data=data)
        if self._ways is not None:
            place = self._ways.place(node, data, self._folder / SECRET)
        place = replace(place, environment=environment)
        if self._setting.mutant:
            place = replace(place, module=("tests.mutants.broker", self._setting.mutant))
        running = [one.address for one in self.brokers.values() if one.is_running]
        join = running[0] if node > 1 else ""
        return BrokerProcess(place, self._folder / f"broker{node}.log", join)

    def _end(self, broker: BrokerProcess) -> None:
        if broker.is_running:
            broker.kill()

    @property
    def bootstrap(self) -> str:
        """The clients' bootstrap addresses: all brokers."""
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def network(self) -> Ways:
        """The network of a setting that has one."""
        assert self._ways is not None
        return self._ways

    @property
    def _prefix(self) -> tuple[str, ...]:
        return self._ways.clients_prefix if self._ways is not None else ()

    def leader(self, partition: int = 0, topic: str = TOPIC) -> int:
        """Return the current leader of a partition."""
        leaders: dict[str, int] = json.loads(self._ask("leaders", topic))
        return leaders[str(partition)]

    def followers(self, partition: int = 0) -> list[int]:
        """Return all brokers but the leader of a partition."""
        leader = self.leader(partition)
        return [node for node in self.brokers if node != leader]

    def _ask(self, *words: str) -> str:
        command = [
            *self._prefix,
            sys.executable,
            "-m",
            "tests.chaos.asking",
            self.bootstrap,
            *words,
        ]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_ASK_SECONDS_MAX
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def count(self, name: str) -> None:
        """Record a fault; the table shows how many there were."""
        self._faults.append(name)

    def kill(self, *nodes: int) -> None:
        """Kill brokers, all at the same time."""
        for _ in nodes:
            self.count("kill")
        kill_all([self.brokers[node] for node in nodes])

    def start(self, *nodes: int) -> None:
        """Start brokers that ended, without waiting for each other."""
        for node in nodes:
            self.brokers[node].launch()
        for node in nodes:
            self.brokers[node].wait_until_it_listens()

    def pause(self, *nodes: int) -> None:
        """Pause brokers."""
        for node in nodes:
            self.count("pause")
            self.brokers[node].pause()

    def resume(self, *nodes: int) -> None:
        """Resume brokers."""
        for node in nodes:
            self.brokers[node].resume()

    def isolate(self, node: int, *, also_from_clients: bool = False) -> None:
        """Cut a broker off from all others."""
        self.count("cut")
        self.network.isolate(node, also_from_clients=also_from_clients)

    def silence(self, sender: int, *receivers: int) -> None:
        """Drop everything that one broker sends to some others, while it still hears them."""
        self.count("cut")
        for receiver in receivers:
            self.network.cut_one_way(sender, receiver)

    def split(self, *halves: tuple[int, ...]) -> None:
        """Cut all connections between the brokers of different parts."""
        self.count("cut")
        self.network.split(*halves)

    def held(self, node: int) -> list[str]:
        """Return the partitions that a broker hosts, will host, or is about to drop."""
        found: list[str] = json.loads(self._ask("held", str(node)))
        return found

    def drain(self, node: int) -> None:
        """Drain a broker."""
        self.count("drain")
        self._ask("drain", str(node))

    def move(self, partition: int, *nodes: int) -> None:
        """Start moving a partition to these brokers, the preferred leader first."""
        self.count("move")
        self._ask("move", str(partition), *map(str, nodes))

    def remove(self, node: int) -> None:
        """Remove a broker that hosts nothing; if it runs, it stops on its own."""
        self._ask("remove", str(node))
        broker = self.brokers.pop(node)
        if broker.is_running:
            broker.wait()

    def wait_until(
        self, is_so: Callable[[], bool], what: str, seconds_max: float = MOVE_SECONDS_MAX
    ) -> None:
        """Wait until a condition holds; raises Stuck if it does not."""
        late = time.monotonic() + seconds_max
        while not is_so():
            if time.monotonic() > late:
                raise Stuck(f"it takes too long until {what}")
            time.sleep(_LOOK_SECONDS)

    @property
    def lost_answers(self) -> int:
        """How many answers have been lost so far."""
        return self._ways.lost if isinstance(self._ways, LossyAnswers) else 0

    def heal(self) -> None:
        """Undo all cuts."""
        self.network.heal()

    def lose_power(self, *nodes: int) -> None:
        """Cut the power of brokers at once: they are gone, and so is everything unsynced."""
        disks = [self.disk(node, PoweredDisk) for node in nodes]
        for node in nodes:
            self.brokers[node].pause()  # without power the broker does not see its disk fail
        for disk in disks:
            self.count("power")
            disk.cut_power()
        kill_all([self.brokers[node] for node in nodes])
        for disk in disks:
            disk.restore_power()

    def disk(self, node: int, kind: type[D]) -> D:
        """Return the disk of a broker."""
        disk = self.disks[node - 1]
        assert isinstance(disk, kind)
        return disk

    def acknowledged_since(self, since: int) -> int:
        """Return how many records were acknowledged that were sent after this time."""
        return sum(
            1
            for op in self.workload.history()
            if isinstance(op, Send) and op.outcome is Outcome.OK and op.begun > since
        )

    def work(self, seconds: float) -> None:
        """Let the clients work, whatever state the brokers are in."""
        time.sleep(seconds)

    def wait_for_progress(self, seconds_max: float = PROGRESS_SECONDS_MAX) -> None:
        """Wait until each partition accepted and served a record sent from now on; else Stuck."""
        begun = now()
        late = begun + int(seconds_max * 10**9)
        while now() < late:
            ops = self.workload.history()
            written, read = _progress(ops, begun)
            shared = _shared(ops, begun) if SHARER in self._setting.roles else read
            if len(written) == len(read) == len(shared) == PARTITIONS:
                return
            time.sleep(_LOOK_SECONDS)
        words = "\n".join(broker.last_words() for broker in self.brokers.values())
        raise Stuck(
            f"only {sorted(written)} were written, only {sorted(read)} read, "
            f"only {sorted(shared)} shared:\n{words}"
        )

    def finish(self) -> Row:
        """Stop the clients, read everything once more, and check it all."""
        ended = now()
        self.workload.stop()
        self.workload.look()
        ops = self.workload.history()
        for node, broker in self.brokers.items():
            assert broker.is_running, f"broker {node} ended:\n{broker.last_words()}"
        return Row(
            faults=tuple(self._faults),
            lost_answers=self.lost_answers,
            verdict=check(ops),
            unavailable_ms=_longest_ms(ops, self._begun, ended),
            seconds=(now() - self._begun) / 1e9,
        )


def _progress(ops: Sequence[Op], since: int) -> tuple[set[int], set[int]]:
    written = {
        op.partition
        for op in ops
        if isinstance(op, Send) and op.outcome is Outcome.OK and op.begun > since
    }
    read = {op.partition for op in ops if isinstance(op, Poll) and op.records and op.ended > since}
    return written, read


def _shared(ops: Sequence[Op], since: int) -> set[int]:
    """Return the partitions of the queue in which records were taken and accepted."""
    return {
        op.partition
        for op in ops
        if isinstance(op, Accept) and op.outcome is Outcome.OK and op.begun > since
    }


def _longest_ms(ops: Sequence[Op], begun: int, ended: int) -> int:
    """Return the longest time without an acknowledgement in a partition, after its first."""
    times: dict[int, list[int]] = defaultdict(list)
    for op in ops:
        if isinstance(op, Send) and op.outcome is Outcome.OK and begun < op.ended < ended:
            times[op.partition].append(op.ended)
    gaps = [b - a for one in times.values() for a, b in pairwise([*sorted(one), ended])]
    return max(gaps, default=0) // 10**6
