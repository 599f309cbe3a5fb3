"""Keeps a machine on the log of a replica.

The leader applies a record when it appends it and answers when it is committed, so that the next
decision already sees it. Whoever begins to lead rebuilds the machine from the log; whoever stops
leading drops it, because it may hold what will never be committed.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from kafkaesque.broker.replica import Replica
from kafkaesque.broker.watermark import Done
from kafkaesque.clock import Clock
from kafkaesque.errors import LogError, NotLeader
from kafkaesque.machines.machine import Machine, MachineRecord
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView

_READ_BYTES = 1 << 20


M = TypeVar("M", bound=Machine)


class MachineHost(Generic[M]):
    """One machine on one replica; `on_ready` is told when it can be asked.

    `on_failed` is told when the log cannot be understood: then it never can.
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        make: Callable[[], M],
        on_ready: Callable[[M], None],
        on_failed: Callable[[LogError], None],
    ) -> None:
        self._replica = replica
        self._clock = clock
        self._make = make
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._machine: M | None = None
        replica.on_serving = self._on_serving
        if replica.is_serving:
            self._on_serving()

    @property
    def machine(self) -> M:
        """The machine; raises NotLeader where it is not hosted now."""
        if self._machine is None:
            raise NotLeader(self._replica.raft.leader)
        return self._machine

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
        self._replica.propose(batch, done)
        for record in records:
            machine.apply(record)

    def when_committed(self, done: Done) -> None:
        """Tell `done` once all that the machine knows now is committed.

        An answer made from the state must wait for this: else it may tell what never came to be.
        """
        self._replica.when_committed(done)

    def _on_serving(self) -> None:
        if not self._replica.is_serving:
            self._machine = None
            return
        try:
            self._machine = self._rebuilt()
        except LogError as error:  # damaged, or written by a later version
            self._on_failed(error)
            return
        self._on_ready(self._machine)

    def _rebuilt(self) -> M:
        machine = self._make()
        log = self._replica.log
        first = log.start.index
        while first < log.end:
            entries = log.entries(first, _READ_BYTES)
            for entry in entries:
                if isinstance(entry.payload, bytes | bytearray | memoryview):
                    for record in read_records(BatchView(entry.payload)):
                        assert record.key is not None, "every record of a machine has a key"
                        machine.apply(MachineRecord(record.key, record.value))
            first = entries[-1].end
        return machine
