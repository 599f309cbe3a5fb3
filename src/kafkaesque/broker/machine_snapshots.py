"""A machine's state beside the log that it lives on: what precedes it in the log may go.

A snapshot is the machine's own records, and is taken when all of them are committed
(`docs/reference/format-snapshot.md`). The two newest are kept and the log behind the older one, so
that one of them may be damaged; every replica takes its own and drops its own log, whoever leads
(`broker/machine_trim.py`). A log that is dropped this way need not be compacted, and is not:
compaction forgets after a while that a key was deleted, and an older state would bring it back.
"""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError, NewerFormat, StateLost
from kafkaesque.log import snapshot
from kafkaesque.log.disk import Disk
from kafkaesque.log.snapshot import MACHINE
from kafkaesque.log.snapshot_pieces import size_and_crc
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import GroupId, Offset

FORMAT = 1
KEPT = 2
"""The newest, and the one before it in case the newest is damaged."""


class _State(msgspec.Struct, array_like=True, frozen=True):
    """What the envelope holds."""

    version: int
    records: list[tuple[bytes, bytes | None]]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_State)


class MachineSnapshots:
    """The snapshots of one machine."""

    def __init__(self, disk: Disk, folder: GroupId, config: LogConfig) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._is_writing = False
        self._size = 0
        self.has_news = True
        """Whether a snapshot was written since the log was last looked at for what may go."""

    def is_due(self, unsaved_bytes: int, unsaved_ms: int) -> bool:
        """Return whether so much and so old a change is worth a snapshot."""
        if self._is_writing or not unsaved_bytes:
            return False
        enough_bytes = max(self._config.snapshot_growth_bytes, self._size)
        return unsaved_bytes >= enough_bytes or unsaved_ms >= self._config.snapshot_age_ms_max

    def load(self, start: Offset, end: Offset) -> tuple[Offset, list[MachineRecord]]:
        """Return the newest good state, and where in a log of these offsets it was taken.

        If there is none, that is no records, at 0. Raises StateLost if the log begins later than
        that: then nobody here knows the state; and NewerFormat.
        """
        found = snapshot.load(self._disk, self._folder, end, MACHINE)
        if found is None or found[0] < start:
            if start > 0:
                raise StateLost(self._folder, start, "the state that the log begins with is gone")
            return start, []
        offset, data = found
        try:
            state = _decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise NewerFormat(self._folder, FORMAT + 1, FORMAT) from error
        if state.version != FORMAT:
            raise NewerFormat(self._folder, state.version, FORMAT)
        self._size = len(data)
        return offset, [MachineRecord(key, value) for key, value in state.records]

    def begin(self, offset: Offset, records: Iterable[MachineRecord]) -> None:
        """Write the state as it was before `offset` without waiting for the disk."""
        assert not self._is_writing, "one at a time: ask `is_due` first"
        data = self._encoded(records)

        def done(error: OSError | None) -> None:
            self._is_writing = False
            if error is None:
                self._remove_old()

        with suppress(LogError):
            self._is_writing = True
            snapshot.begin_write(self._disk, self._folder, offset, data, MACHINE, done)
            return
        self._is_writing = False

    def write(self, offset: Offset, records: Iterable[MachineRecord]) -> None:
        """Write the state as it was before `offset`; durable on return, if it worked."""
        if self._is_writing:
            return
        with suppress(LogError):
            snapshot.write(self._disk, self._folder, offset, self._encoded(records), MACHINE)
            self._remove_old()

    def offsets(self) -> list[Offset]:
        """Return where the snapshots were taken that there are, oldest first."""
        return snapshot.offsets(self._disk, self._folder, MACHINE)

    def needed_from(self) -> Offset:
        """Return where the log is needed from, should the newest snapshot be damaged."""
        return ([0] * KEPT + self.offsets())[-KEPT]

    def newest_good(self, start: Offset, end: Offset) -> tuple[Offset, int, int] | None:
        """Return offset, size and checksum of the newest state within a log that is not damaged."""
        for offset in reversed(self.offsets()):
            if start <= offset <= end:
                found = size_and_crc(self._disk, self._folder, offset, MACHINE)
                if found is not None:
                    return offset, *found
        return None

    def _encoded(self, records: Iterable[MachineRecord]) -> bytes:
        data = _encoder.encode(_State(FORMAT, [(r.key, r.value) for r in records]))
        self._size = len(data)
        return data

    def _remove_old(self) -> None:
        self.has_news = True
        with suppress(LogError):
            for offset in self.offsets()[:-KEPT]:
                snapshot.remove(self._disk, self._folder, offset, MACHINE)
