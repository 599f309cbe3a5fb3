"""Brings a machine from a snapshot to the end of its log, in slices; the only loop that does."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.machines.machine import Machine, MachineRecord
from kafkaesque.record.read import iterate_records
from kafkaesque.record.view import BatchView
from kafkaesque.slices import Sliced
from kafkaesque.types import Buffer, Index, Offset

_READ_BYTES = 64 << 10
"""How much is read and checked at once; takes half a millisecond."""

_RECORD_BYTES = 100
"""The overhead of the smallest record, as the number of bytes that would take as long."""

M = TypeVar("M", bound=Machine)


class Replay(Generic[M]):
    """One machine and its position in the log. Raises LogError as the log does."""

    def __init__(self, machine: M, log: PartitionLog, snapshots: MachineSnapshots) -> None:
        self.machine = machine
        self.next: Index = log.start.index
        """The machine reflects everything before this index."""
        self.bytes = 0
        """How many bytes of the log were applied since it was last loaded."""
        self._log = log
        self._snapshots = snapshots

    def load(self) -> Sliced[None]:
        """Load the newest snapshot into the new machine."""
        log = self._log
        offset, slices = yield from self._snapshots.loading(log.start.offset, log.end_offset)
        for records in slices:
            yield from self._apply(records)
            yield
        self.loaded(offset)

    def loaded(self, offset: Offset) -> None:
        """Note that the machine reflects exactly the records before `offset`."""
        log = self._log
        # Just behind the last applied record: the marks after it may be uncommitted, and what
        # replaces them must not be skipped.
        is_later = offset > log.start.offset
        self.next = log.index_at(offset - 1) + 1 if is_later else log.start.index
        self.bytes = 0

    def advance(self, stop: Callable[[], Index]) -> Sliced[None]:
        """Apply everything before `stop`, which may advance meanwhile.

        If the log restarted beyond `next`, it does nothing.
        """
        log = self._log
        while log.start.index <= self.next < stop():
            entries = log.entries(self.next, _READ_BYTES)
            if not entries:
                self.next = stop()  # nothing but a hole left by compaction
            for entry in entries:
                if entry.end > stop():
                    self.next = stop()  # a hole reaches this far
                    return
                if isinstance(entry.payload, bytes | bytearray | memoryview):
                    self.bytes += len(entry.payload)
                    yield from self._apply(_records(entry.payload))
                self.next = entry.end

    def _apply(self, records: Iterable[MachineRecord]) -> Sliced[None]:
        machine, slice_bytes, size = self.machine, self._snapshots.slice_bytes, 0
        for record in records:
            machine.apply(record)
            size += len(record.key) + len(record.value or b"") + _RECORD_BYTES
            if size >= slice_bytes:
                size = 0
                yield


def _records(batch: Buffer) -> Iterator[MachineRecord]:
    for one in iterate_records(BatchView(batch)):
        assert one.key is not None, "every record of a machine has a key"
        yield MachineRecord(one.key, one.value)
