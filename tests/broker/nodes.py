"""One node with a real store and a real replica on a simulated disk; the test plays its peers."""

import random
from collections.abc import Callable

from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.store import Store
from kafkaesque.config import RaftConfig
from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.errors import LogError
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRequest,
    Heartbeat,
    Message,
    VoteResponse,
)
from kafkaesque.raft.raft import Role
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.sim.disk import SimDisk
from kafkaesque.sim.node import open_or_refill
from kafkaesque.types import GroupId, Index, NodeId, Offset, Term
from tests.heard import Heard
from tests.log.logs import START_MS, TINY, HandClock
from tests.sim.disks import SMALL_PAGES, Later

GROUP = "orders"
ALONE = Voters(voters=(1,))
THREE = Voters(voters=(1, 2, 3))


def a_batch(*values: bytes, base: Offset = 0, term: Term = 0) -> bytearray:
    """A batch as a producer packs it; the leader stamps it."""
    records = [
        Record(offset=base + place, timestamp_ms=START_MS, key=None, value=value)
        for place, value in enumerate(values)
    ]
    return build_batch(records, term=term)


class Node:
    """Node 1. With `holds_syncs` the disk answers only when the test says `sync`."""

    def __init__(self, voters: Voters = THREE, *, holds_syncs: bool = False) -> None:
        self.later = Later()
        self.holds_syncs = holds_syncs
        self.disk = SimDisk(random.Random(1), self.later, SMALL_PAGES)
        self.sent: list[Message] = []
        self.failures: list[LogError] = []
        self.heard = Heard(HandClock())
        self.store = self._open_store()
        self.replica = self._run(self.store.create_log(GROUP, voters))

    def after_event(self) -> None:
        self.store.flusher.kick()
        if not self.holds_syncs:
            self.sync()

    def sync(self) -> None:
        """Let the disk answer until no requests are left."""
        self.store.flusher.kick()
        while self.later.waiting:
            self.later.play()
            self.store.flusher.kick()

    def step(self, message: Message) -> None:
        self.replica.step(message)
        self.after_event()

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.replica.tick()
            self.after_event()

    def propose(self, *values: bytes) -> tuple[Offset, list[Outcome]]:
        """Propose a batch; the list receives its outcome."""
        outcomes: list[Outcome] = []
        offset = self.replica.propose(a_batch(*values), outcomes.append)
        self.after_event()
        return offset, outcomes

    def accepts(self, source: NodeId, match: Index) -> None:
        """Let a follower acknowledge everything before `match`."""
        term = self.replica.raft.term
        self.step(AppendAccepted(source=source, target=1, term=term, match=match, commit=0))

    def grants(self, source: NodeId, term: Term, *, is_pre: bool) -> None:
        self.step(VoteResponse(source=source, target=1, term=term, is_pre=is_pre, is_granted=True))

    def elect(self) -> None:
        """Make this node the leader of a group of three, with its mark committed."""
        self.tick(20)
        term = self.replica.raft.term + 1
        self.grants(2, term, is_pre=True)
        self.sync()
        self.grants(2, term, is_pre=False)
        self.sync()
        assert self.replica.raft.role is Role.LEADER
        self.accepts(2, self.replica.raft.end)

    def let_the_transfer_fail(self) -> None:
        """Let time pass while all followers answer and none takes over."""
        leadership = self.replica.raft.leadership
        assert leadership is not None
        for _ in range(self.replica.raft.config.transfer_ticks):
            self.tick()
            self.accepts(2, self.replica.raft.end)
        assert self.replica.raft.leadership is leadership
        assert leadership.transferee is None

    def restart(self, *, after: Callable[[], object] | None = None) -> None:
        """Stop cleanly, run `after`, and start again."""
        self.store.close()
        self.disk.kill()
        if after is not None:
            after()
        self.start()

    def start(self) -> None:
        self.later.waiting.clear()
        self.sent.clear()
        self.store = self._open_store()
        self.replica = self._run(open_or_refill(self.store, GROUP))

    def values(self) -> list[bytes | None]:
        """Every record in the log, as the replica would send it to a follower."""
        entries = self.replica.log.entries(self.replica.log.start.index, 1 << 20)
        return [value for entry in entries for value in values_of(entry)]

    def segment(self, place: int) -> str:
        """The path of one of the group's segments, oldest first."""
        names = [name for name in self.disk.list(GROUP) if name.endswith(".log")]
        return f"{GROUP}/{names[place]}"

    def _open_store(self) -> Store:
        store = Store.open(self.disk, TINY, HandClock(), 1, self.failures.append, self.heard)
        self.later.take_slices(store.slices)
        return store

    def site(
        self,
        clock: HandClock,
        failures: list[LogError] | None = None,
        snapshots: MachineSnapshots | None = None,
    ) -> MachineSite:
        """Where a machine can live on this node's replica."""
        return MachineSite(
            replica=self.replica,
            clock=clock,
            snapshots=snapshots or self.store.snapshots(GROUP),
            slices=self.store.slices,
            failed=(self.failures if failures is None else failures).append,
        )

    def _run(self, log: PartitionLog) -> Replica:
        replica = self.store.replica(log, RaftConfig(), random.Random(1), self._send)
        self.after_event()
        return replica

    def _send(self, group: GroupId, message: Message) -> None:
        assert group == GROUP
        self.sent.append(message)


def values_of(entry: Entry) -> list[bytes | None]:
    if isinstance(entry.payload, TermOpened | Voters):
        return []
    return [record.value for record in read_records(BatchView(entry.payload))]


def entry(first: Index, term: Term, batch: bytearray) -> Entry:
    return Entry(first, first + BatchView(batch).last_offset_delta + 1, term, bytes(batch))


def append(
    term: Term, prev_end: Index, *entries: Entry, prev_term: Term = 0, commit: Index = 0
) -> AppendRequest:
    """An append from node 2, which leads."""
    return AppendRequest(
        source=2,
        target=1,
        term=term,
        prev_end=prev_end,
        prev_term=prev_term,
        commit=commit,
        entries=entries,
    )


def heartbeat(term: Term, commit: Index = 0, low: Offset = 0) -> Heartbeat:
    return Heartbeat(source=2, target=1, term=term, commit=commit, low=low)
