"""A machine's saved states beside its log, which may drop what they cover.

A snapshot consists of the machine's own records, and is taken when all of them are committed
(`docs/reference/format-snapshot.md`). The two newest are kept, and the log behind the older one, so
that one of them may be damaged. Every replica takes its own and trims its own log, whichever leads
(`broker/machine_hosting/machine_saver.py`). A log that is trimmed this way need not be compacted,
and is not: compaction eventually forgets that a key was deleted, and an older state would bring it
back.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from kafkaesque.broker.machine_hosting.state_codec import FORMAT, UnknownState, decoding, encoding
from kafkaesque.broker.replication.failures import StateLost
from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError, NewerFormat
from kafkaesque.log import snapshot
from kafkaesque.log.disk import Disk
from kafkaesque.log.snapshot import MACHINE, SnapshotFile
from kafkaesque.log.snapshot_pieces import size_and_crc
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.slices import Sliced, whole
from kafkaesque.types import GroupId, Offset

KEPT = 2
"""The newest, and the one before it in case the newest is damaged."""


class MachineSnapshots:
    """The snapshots of one machine."""

    def __init__(self, disk: Disk, folder: GroupId, config: LogConfig) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._is_writing = False
        self._size = 0
        self.has_news = True
        """Whether a snapshot was written since the log was last trimmed."""

    def is_due(self, unsaved_bytes: int, unsaved_ms: int) -> bool:
        """Return whether this much unsaved data of this age is worth a snapshot."""
        if self._is_writing or not unsaved_bytes:
            return False
        enough_bytes = max(self._config.snapshot_growth_bytes, self._size)
        return unsaved_bytes >= enough_bytes or unsaved_ms >= self._config.snapshot_age_ms_max

    @property
    def slice_bytes(self) -> int:
        """How much of a state, or of a log, is read or written between two events."""
        return self._config.slice_bytes

    def load(self, start: Offset, end: Offset) -> tuple[Offset, list[MachineRecord]]:
        """Return the newest intact state in a log of these offsets, and its offset.

        If there is none, returns no records, at 0. Raises StateLost if the log starts later than
        that: then this broker does not have the state; and NewerFormat.
        """
        offset, slices = whole(self.loading(start, end))
        return offset, [record for records in slices for record in records]

    def loading(
        self, start: Offset, end: Offset
    ) -> Sliced[tuple[Offset, Iterator[list[MachineRecord]]]]:
        """Like `load`, in slices; the records, too, are read a slice at a time."""
        found = yield from snapshot.loading(self._disk, self._folder, end, MACHINE)
        if found is None or found[0] < start:
            if start > 0:
                raise StateLost(self._folder, start, "the state at the start of the log is gone")
            return start, iter(())
        offset, state = found
        self._size = len(state)
        return offset, self._records(state)

    def _records(self, state: bytes | bytearray) -> Iterator[list[MachineRecord]]:
        try:
            yield from decoding(state, self.slice_bytes)
        except UnknownState as error:
            raise NewerFormat(self._folder, FORMAT + 1, FORMAT) from error

    def saving(self, offset: Offset, records: Iterable[MachineRecord]) -> Sliced[None]:
        """Write the state before `offset` without waiting for the disk, in slices.

        The records must not change meanwhile. If there is no room, or the work is given up, there
        is no snapshot.
        """
        assert not self._is_writing, "one at a time: ask `is_due` first"
        self._is_writing = True
        try:
            pieces = yield from encoding(records, self.slice_bytes)
            self._size = sum(map(len, pieces))
            with SnapshotFile(self._disk, self._folder, offset, MACHINE) as file:
                for piece in pieces:
                    file.append(piece)
                    yield
                file.finish(self._written)
        except (LogError, GeneratorExit):
            self._is_writing = False

    def _written(self, error: OSError | None) -> None:
        self._is_writing = False
        if error is None:
            self._remove_old()

    def write(self, offset: Offset, records: Iterable[MachineRecord]) -> None:
        """Write the state before `offset`; durable on return, if it worked.

        An earlier snapshot at that offset is kept.
        """
        if self._is_writing or offset <= max(self.offsets(), default=0):
            return
        with suppress(LogError):
            state = b"".join(whole(encoding(records, self.slice_bytes)))
            self._size = len(state)
            snapshot.write(self._disk, self._folder, offset, state, MACHINE)
            self._remove_old()

    def offsets(self) -> list[Offset]:
        """Return the offsets of the snapshots, oldest first."""
        return snapshot.offsets(self._disk, self._folder, MACHINE)

    def needed_from(self) -> Offset:
        """Return where the log is needed from if the newest snapshot is damaged."""
        return ([0] * KEPT + self.offsets())[-KEPT]

    def newest_good(self, start: Offset, end: Offset) -> tuple[Offset, int, int] | None:
        """Return offset, size and checksum of the newest intact state within the log."""
        for offset in reversed(self.offsets()):
            if start <= offset <= end:
                found = size_and_crc(self._disk, self._folder, offset, MACHINE)
                if found is not None:
                    return offset, *found
        return None

    def _remove_old(self) -> None:
        self.has_news = True
        with suppress(LogError):
            for offset in self.offsets()[:-KEPT]:
                snapshot.remove(self._disk, self._folder, offset, MACHINE)
