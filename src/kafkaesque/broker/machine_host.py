"""Keeps a machine on the log of a replica.

The leader applies a record when it appends it and answers when it is committed, so that the next
decision already sees it. Whoever begins to lead rebuilds the machine from the newest snapshot and
the log behind it; whoever stops leading drops it, because it may hold what will never be committed.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from kafkaesque.broker.failing import can_be_mended
from kafkaesque.broker.machine_snapshots import MachineSnapshots
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.watermark import Done
from kafkaesque.clock import Clock
from kafkaesque.errors import LogError, NotLeader
from kafkaesque.machines.machine import Machine, MachineRecord
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.types import NodeId, Offset

_READ_BYTES = 1 << 20


M = TypeVar("M", bound=Machine)


class MachineHost(Generic[M]):
    """One machine on one replica; `on_ready` is told when it can be asked.

    `on_failed` is told when the log cannot be understood: then it never can. A log that is damaged
    is another's to lead until it is mended, and the only copy is led without a machine. `on_lost`,
    if set, is told when the machine is dropped, so that nobody goes on waiting for it. Without
    `saves` another writes the snapshots (`broker/machine_follower.py`).
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        make: Callable[[], M],
        on_ready: Callable[[M], None],
        on_failed: Callable[[LogError], None],
        snapshots: MachineSnapshots,
        *,
        saves: bool = True,
    ) -> None:
        self.on_lost: Callable[[M], None] = _ignore
        self._replica = replica
        self._clock = clock
        self._make = make
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._snapshots = snapshots
        self._saves = saves
        self._machine: M | None = None
        self._unsaved_bytes = 0
        """By how much the log has grown since the newest snapshot."""
        self._unsaved_since_ms = 0
        before = replica.on_serving

        def on_serving() -> None:
            before()
            self._on_serving()

        replica.on_serving = on_serving
        if replica.is_serving:
            self._on_serving()

    @property
    def machine(self) -> M:
        """The machine; raises NotLeader where it is not hosted now."""
        if self._machine is None or not self._replica.is_serving:
            raise NotLeader(self._replica.raft.leader)
        return self._machine

    @property
    def is_hosted(self) -> bool:
        """Whether the machine can be asked here and now."""
        return self._machine is not None and self._replica.is_serving

    @property
    def may_decide(self) -> bool:
        """Whether what is decided now can be written, but for a full disk.

        Nothing may be decided while leadership is being handed over. A machine that has decided
        takes it for done: time-outs are struck off, who waited is answered. If the hand-over is
        called off this broker leads on with the same machine, and the log knows nothing of it.
        """
        return self._machine is not None and self._replica.may_propose

    @property
    def voters(self) -> Collection[NodeId]:
        """Who votes on what the machine decides."""
        return self._replica.raft.voters.voters

    @property
    def end_offset(self) -> Offset:
        """The offset that the next record gets."""
        return self._replica.log.end_offset

    def write(self, records: Sequence[MachineRecord], done: Done) -> None:
        """Append and apply what the machine decided; `done` learns its fate."""
        machine = self.machine
        now_ms = self._clock.now_ms()
        batch = build_batch(
            [
                Record(offset=place, timestamp_ms=now_ms, key=key, value=value)
                for place, (key, value) in enumerate(records)
            ]
        )
        self._unsaved(len(batch))
        self._replica.propose(batch, done)
        for record in records:
            machine.apply(record)

    def rebuild(self) -> None:
        """Make the machine anew from the log: what it decided last could not be written."""
        self.close()
        self._on_serving()

    def close(self) -> None:
        """Drop the machine, if it is here."""
        lost, self._machine = self._machine, None
        if lost is not None:
            self.on_lost(lost)

    def when_committed(self, done: Done) -> None:
        """Tell `done` once all that the machine knows now is committed.

        An answer made from the state must wait for this: else it may tell what never came to be.
        """
        self._replica.when_committed(done)

    def tick(self) -> None:
        """Save the state if that is due; also notices a replica that stopped without a word."""
        if self._machine is not None and not self._replica.is_serving:
            self._on_serving()
        if not self._saves:
            return
        unsaved_ms = self._clock.monotonic_ms() - self._unsaved_since_ms
        if self._snapshots.is_due(self._unsaved_bytes, unsaved_ms) and self._is_settled:
            assert self._machine is not None
            self._snapshots.begin(self._replica.log.end_offset, self._machine.records())
            self._unsaved_bytes = 0

    def stop(self) -> None:
        """Save the state before a clean stop, so that the next start replays nothing."""
        if self._saves and self._unsaved_bytes and self._is_settled:
            assert self._machine is not None
            self._snapshots.write(self._replica.log.end_offset, self._machine.records())
            self._unsaved_bytes = 0

    def _unsaved(self, size: int) -> None:
        if not self._unsaved_bytes:
            self._unsaved_since_ms = self._clock.monotonic_ms()
        self._unsaved_bytes += size

    @property
    def _is_settled(self) -> bool:
        """Whether the state holds nothing that is not committed."""
        replica = self._replica
        is_hosted = self._machine is not None and replica.is_serving
        return is_hosted and replica.raft.commit >= replica.log.end

    def _on_serving(self) -> None:
        if not self._replica.is_serving:
            self.close()
            return
        try:
            self._machine = self._rebuilt()
        except LogError as error:
            if can_be_mended(error):
                self._replica.damaged(error)  # another leads; without others nobody is hosted
            else:  # written by a later version, or the disk fails
                self._on_failed(error)
            return
        self._on_ready(self._machine)

    def _rebuilt(self) -> M:
        machine = self._make()
        log = self._replica.log
        offset, records = self._snapshots.load(log.start.offset, log.end_offset)
        for record in records:
            machine.apply(record)
        first = log.index_at(offset) if offset > log.start.offset else log.start.index
        self._unsaved_bytes = 0
        while first < log.end:
            entries = log.entries(first, _READ_BYTES)
            for entry in entries:
                if isinstance(entry.payload, bytes | bytearray | memoryview):
                    self._unsaved(len(entry.payload))
                    for one in read_records(BatchView(entry.payload)):
                        assert one.key is not None, "every record of a machine has a key"
                        machine.apply(MachineRecord(one.key, one.value))
            if not entries:
                break  # nothing but a hole that compaction left
            first = entries[-1].end
        return machine


def _ignore(_: object) -> None:
    """Nobody waits for this machine."""
